#include <sentencepiece_processor.h>

#include <algorithm>

#include "data/file_bytes.h"
#include "data/hash.h"
#include "weft/data.h"

namespace weft::data {

namespace {

constexpr std::int32_t kFirstByte = 3;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

// A byte vocabulary if there is no processor.
struct Vocabulary::Pieces {
  std::string fingerprint = "bytes", model = {};
  std::unique_ptr<const sentencepiece::SentencePieceProcessor> processor = nullptr;
  std::int64_t size = kFirstByte + 256;
  std::int32_t line_end = kFirstByte + '\n';  // kUnknown if the model has no piece for it

  // For a SentencePiece model.
  void encode_line(std::string_view line, std::vector<std::int32_t>& to) const {
    std::vector<int> ids;
    const auto status = processor->Encode(line, &ids);
    if (!status.ok())
      throw RunError({.code = "vocabulary.encoding-failed",
                      .what = "SentencePiece failed: " + status.ToString(),
                      .where = "encoding of a line of text",
                      .fix = "try a shorter line"});
    to.insert(to.end(), ids.begin(), ids.end());
  }

  std::string decode_line(const std::vector<int>& ids) const {
    std::string text;
    if (!processor)
      for (const int id : ids)
        if (id >= kFirstByte) text += static_cast<char>(id - kFirstByte);
        else text += kReplacement;
    else if (const auto status = processor->Decode(ids, &text); !status.ok())
      throw RunError({.code = "vocabulary.decoding-failed",
                      .what = "SentencePiece failed: " + status.ToString(),
                      .where = "decoding of ids",
                      .fix = "see that the ids come from this vocabulary"});
    return text;
  }
};

Vocabulary Vocabulary::bytes() {
  Vocabulary out;
  out.pieces_ = std::make_shared<Pieces>();
  return out;
}

Vocabulary Vocabulary::open(const std::string& path) {
  const FileBytes file(path);
  std::string model = file.read_text(0, file.size());
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  if (model.empty() || !processor->LoadFromSerializedProto(model).ok() || processor->GetPieceSize() == 0)
    throw UserError({.code = "vocabulary.not-a-model",
                     .what = "the file is no SentencePiece model",
                     .where = path,
                     .fix = "give 'bytes', or a .model as weft vocab train and spm_train write it"});
  if (processor->pad_id() != kPadding || processor->eos_id() != kEnd || processor->unk_id() != kUnknown)
    throw UserError({.code = "vocabulary.other-special-ids",
                     .what = sentence("the model's ids of padding, end and unknown are ", processor->pad_id(), ", ",
                                      processor->eos_id(), ", ", processor->unk_id(), "; Weft's are 0, 1, 2"),
                     .where = path,
                     .fix = "train it by weft vocab train, or with --pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1"});
  auto pieces = std::make_shared<Pieces>();
  Hash hash;
  hash.add(model);
  pieces->fingerprint = hash.text();
  pieces->model = std::move(model);
  pieces->size = processor->GetPieceSize();
  pieces->line_end = processor->PieceToId("<0x0A>");
  pieces->processor = std::move(processor);
  Vocabulary out;
  out.pieces_ = std::move(pieces);
  return out;
}

Vocabulary Vocabulary::of(const std::string& name) { return name == "bytes" ? bytes() : open(name); }

std::int64_t Vocabulary::size() const { return pieces_->size; }
const std::string& Vocabulary::fingerprint() const { return pieces_->fingerprint; }
const std::string& Vocabulary::model() const { return pieces_->model; }

std::vector<std::int32_t> Vocabulary::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  if (!pieces_->processor) {
    ids.resize(text.size());
    std::transform(text.begin(), text.end(), ids.begin(),
                   [](char byte) { return kFirstByte + static_cast<unsigned char>(byte); });
    return ids;
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    pieces_->encode_line(text.substr(begin, end - begin), ids);
    if (end < text.size()) ids.push_back(pieces_->line_end);
    begin = end + 1;
  }
  return ids;
}

std::string Vocabulary::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  std::vector<int> line;
  for (const std::int32_t id : ids) {
    if (id == kEnd) break;
    if (id == kPadding) continue;
    if (id == pieces_->line_end && id != kUnknown) {
      text += pieces_->decode_line(line) + '\n';
      line.clear();
    } else {
      line.push_back(id < 0 || id >= size() ? kUnknown : id);
    }
  }
  return text + pieces_->decode_line(line);
}

}  // namespace weft::data
