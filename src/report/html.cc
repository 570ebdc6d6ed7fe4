#include "report/html.h"

#include <algorithm>
#include <cmath>

namespace weft::report {

namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

// The number of bytes of the UTF-8 character at `at`; 0 if there is none that XML allows.
std::size_t character_size(std::string_view raw, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(raw[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return first >= 0x20 || first == '\n' || first == '\t' ? 1 : 0;
  const std::size_t size = first >= 0xC2 && first < 0xE0   ? 2
                           : first >= 0xE0 && first < 0xF0 ? 3
                           : first >= 0xF0 && first < 0xF5 ? 4
                                                           : 0;
  if (size == 0 || at + size > raw.size()) return 0;
  for (std::size_t i = at + 1; i < at + size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const unsigned char second = byte(at + 1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool beyond = first == 0xF4 && second >= 0x90;
  const bool none = first == 0xEF && second == 0xBF && byte(at + 2) >= 0xBE;
  return overlong || surrogate || beyond || none ? 0 : size;
}

std::string cell_text(const Cell& cell) {
  if (cell.bar < 0) return escaped(cell.raw);
  const double width = 100 * std::clamp(cell.bar, 0.0, 1.0);
  return text("<span class=\"bars\"><span class=\"bar\"><span style=\"width:", fixed(width, 1), "%\"></span></span>",
              escaped(cell.raw), "</span>");
}

}  // namespace

std::string escaped(std::string_view raw) {
  std::string out;
  for (std::size_t i = 0; i < raw.size();) {
    const std::size_t size = character_size(raw, i);
    if (size == 0) out += kReplacement;
    else if (raw[i] == '&') out += "&amp;";
    else if (raw[i] == '<') out += "&lt;";
    else if (raw[i] == '>') out += "&gt;";
    else if (raw[i] == '"') out += "&quot;";
    else if (raw[i] == '\'') out += "&#39;";
    else out += raw.substr(i, size);
    i += std::max<std::size_t>(size, 1);
  }
  return out;
}

std::string fixed(double number, int digits) {
  std::ostringstream out;
  out.setf(std::ios::fixed);
  out.precision(digits);
  out << number;
  std::string all = out.str();
  if (all.find('.') == std::string::npos) return all;
  all.erase(all.find_last_not_of('0') + 1);
  if (all.back() == '.') all.pop_back();
  return all == "-0" ? "0" : all;
}

std::string percent(double share) {
  std::ostringstream out;
  out.setf(std::ios::fixed);
  out.precision(1);
  out << 100 * share << " %";
  return out.str();
}

Cell number_cell(std::string raw) { return {.raw = std::move(raw), .number = true}; }

std::string table(const std::vector<std::string>& heads, const std::vector<std::vector<Cell>>& rows) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (std::size_t c = 0; c < heads.size(); ++c) {
    const bool number = !rows.empty() && c < rows[0].size() && rows[0][c].number;
    out += text("<th", number ? " class=\"number\"" : "", ">", escaped(heads[c]), "</th>");
  }
  out += "</tr></thead><tbody>\n";
  for (const std::vector<Cell>& row : rows) {
    out += "<tr>";
    for (const Cell& cell : row)
      out += text("<td", cell.number ? " class=\"number\"" : "", ">", cell_text(cell), "</td>");
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string paragraph(std::string_view raw, std::string_view style) {
  return text("<p", style.empty() ? "" : text(" class=\"", style, "\""), ">", escaped(raw), "</p>\n");
}

std::string section(std::string_view id, std::string_view title, const std::string& body) {
  return text("<section id=\"", id, "\">\n<h2>", escaped(title), "</h2>\n", body, "</section>\n");
}

std::string svg(double width, double height, std::string_view label, const std::string& body) {
  return text("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", fixed(width, 1), " ", fixed(height, 1),
              "\" style=\"max-width:", fixed(width, 0), "px\" role=\"img\" aria-label=\"", escaped(label), "\">\n",
              body, "</svg>\n");
}

std::string rectangle(double x, double y, double width, double height, std::string_view style, std::string_view title) {
  const std::string begin = text("<rect x=\"", fixed(x, 2), "\" y=\"", fixed(y, 2), "\" width=\"", fixed(width, 2),
                                 "\" height=\"", fixed(height, 2), "\" class=\"", style, "\"");
  if (title.empty()) return begin + "/>\n";
  return text(begin, "><title>", escaped(title), "</title></rect>\n");
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return text("<line x1=\"", fixed(x1, 1), "\" y1=\"", fixed(y1, 1), "\" x2=\"", fixed(x2, 1), "\" y2=\"", fixed(y2, 1),
              "\" class=\"", style, "\"/>\n");
}

std::string label(double x, double y, std::string_view raw, std::string_view style) {
  return text("<text x=\"", fixed(x, 1), "\" y=\"", fixed(y, 1), "\"",
              style.empty() ? "" : text(" class=\"", style, "\""), ">", escaped(raw), "</text>\n");
}

std::vector<double> byte_ticks(double most, int count) {
  double unit = 1;
  while (most / unit >= 1024) unit *= 1024;
  std::vector<double> all = ticks(most / unit, count);
  for (double& bytes : all) bytes *= unit;
  return all;
}

std::vector<double> ticks(double most, int count) {
  if (!(most > 0)) return {0};
  const double rough = most / count, power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough <= power ? 1 : rough <= 2 * power ? 2 : rough <= 5 * power ? 5 : 10);
  std::vector<double> all;
  for (int i = 0; i == 0 || all.back() < most * (1 - 1e-9); ++i) all.push_back(i * step);
  return all;
}

// System fonts and few colours: blue products, green attention, purple loss, grey everything else, red collectives.
const char* const kStyleSheet = R"css(
:root { --paper:#ffffff; --ink:#1d2126; --soft:#626b75; --rule:#d9dee3; --band:#f4f6f8; --accent:#2f6690;
  --product:#4477aa; --attention:#4a9a5b; --loss:#9a5aa0; --other:#aab2ba; --wire:#d9605a;
  --variables:#8fa6bd; --arena:#4477aa; --workspace:#e0a458; }
@media (prefers-color-scheme: dark) { :root { --paper:#16191d; --ink:#e4e7ea; --soft:#9aa4ae; --rule:#353c44;
  --band:#1f242a; --accent:#7fb2d9; --product:#5f93c8; --attention:#5fae70; --loss:#b57abb; --other:#717a83;
  --wire:#e2746e; --variables:#5f7890; --arena:#5f93c8; --workspace:#d39a52; } }
* { box-sizing:border-box; }
body { margin:0; background:var(--paper); color:var(--ink); font:15px/1.5 system-ui,"Segoe UI",Roboto,sans-serif; }
main { max-width:1120px; margin:0 auto; padding:28px 28px 60px; }
h1 { font-size:25px; font-weight:600; margin:0 0 2px; } h2 { font-size:18px; font-weight:600; margin:0 0 10px; }
h3 { font-size:14px; font-weight:600; margin:16px 0 4px; }
section { border-top:1px solid var(--rule); margin-top:26px; padding-top:16px; }
p { margin:6px 0 10px; max-width:86ch; } .soft, .soft text { color:var(--soft); fill:var(--soft); }
code { font:13px/1.4 ui-monospace,"DejaVu Sans Mono",monospace; overflow-wrap:anywhere; }
.choice { background:var(--band); padding:10px 12px; border-radius:4px; margin:12px 0; }
dl.tiles { display:grid; grid-template-columns:repeat(auto-fill,minmax(205px,1fr)); gap:10px; margin:14px 0 0; }
dl.tiles div { background:var(--band); border-radius:4px; padding:9px 12px; } dt { color:var(--soft); font-size:13px; }
dd { margin:0; font-size:20px; } dd small { display:block; font-size:12.5px; color:var(--soft); }
.scroll { overflow-x:auto; } table { border-collapse:collapse; font-size:13.5px; width:100%; min-width:600px; margin:8px 0 12px; }
th { text-align:left; color:var(--soft); font-weight:500; border-bottom:1px solid var(--rule); padding:4px 12px 4px 0; }
td { border-bottom:1px solid var(--rule); padding:4px 12px 4px 0; vertical-align:top; overflow-wrap:break-word; }
.number { text-align:right; white-space:nowrap; font-variant-numeric:tabular-nums; overflow-wrap:normal; }
.bars { white-space:nowrap; } .bar { display:inline-block; width:90px; height:9px; margin-right:8px; background:var(--band); }
.bar > span { display:block; height:100%; background:var(--accent); }
.cards { display:grid; grid-template-columns:repeat(auto-fill,minmax(330px,1fr)); gap:14px 26px; }
.card p { font-size:13px; margin:2px 0 6px; } .card h3 { overflow-wrap:anywhere; }
svg { display:block; width:100%; height:auto; } svg text { font:12px system-ui,"Segoe UI",Roboto,sans-serif; fill:var(--ink); }
svg text.soft { fill:var(--soft); } svg text.end { text-anchor:end; } svg text.middle { text-anchor:middle; }
svg text.soft-end { fill:var(--soft); text-anchor:end; } svg text.soft-middle { fill:var(--soft); text-anchor:middle; }
.grid { stroke:var(--rule); stroke-width:1; } .axis { stroke:var(--soft); stroke-width:1; }
.limit { stroke:var(--wire); stroke-width:1.5; stroke-dasharray:6 4; }
.allocated { stroke:var(--ink); stroke-width:1.2; stroke-dasharray:2 3; } .lane { fill:var(--band); }
.product { fill:var(--product); } .attention { fill:var(--attention); } .loss { fill:var(--loss); }
.other { fill:var(--other); } .wire { fill:var(--wire); } .variables { fill:var(--variables); }
.arena { fill:var(--arena); } .workspace { fill:var(--workspace); }
.forward { fill:#9db8d2; } .recompute { fill:#e0c27c; } .backward { fill:#7f9a86; } .update { fill:#b39ab8; }
.frontier { fill:none; stroke:var(--accent); stroke-width:1.5; } .point { fill:var(--paper); stroke:var(--accent); stroke-width:1.5; }
.best { fill:var(--other); } .chosen { fill:var(--wire); } .edge { fill:none; stroke:var(--soft); stroke-width:1; }
@media print { :root { --paper:#fff; --ink:#000; --soft:#555; --rule:#ccc; --band:#f3f3f3; } main { padding:0; max-width:none; }
  section, .card, svg, tr { break-inside:avoid; } section { break-inside:auto; } .scroll { overflow:visible; }
  * { print-color-adjust:exact; -webkit-print-color-adjust:exact; } body { font-size:11pt; } }
)css";

}  // namespace weft::report
