#include "program/verify.h"

#include "base/str.h"
#include "program/builder.h"
#include "program/program_text.h"
#include "program/text.h"
#include "support/expect_error.h"

namespace weft::verify_test {
namespace {

using test::program_of;
using test::raw_program_of;

// Values that most cases start from. The mesh is data:2 model:4 one:1.
const std::string kGiven = R"(
input x %0 f32 [a=4 b=8]
input y %1 f32 [b=8 c=16]
input i %2 i32 [a=4]
input o %3 i64 []
input s %4 f32 [a=4 b=8] {a:data}
input ps %5 f32 [a=4 b=8] {| sum:data}
input pm %6 f32 [a=4 b=8] {| max:data}
input q %7 bool [a=4 b=8]
input h %8 bf16 [a=4 b=8]
input one %9 f32 [a=4 b=8] {| sum:one}
input p2 %10 f32 [a=4 b=8] {| sum:data+model}
)";

struct Case {
  const char* lines;
  const char* rule;
};

void expect_broken(std::initializer_list<Case> cases) {
  for (const Case& broken : cases)
    EXPECT_INTERNAL_ERROR(verify(raw_program_of(kGiven + broken.lines), "some_pass"), "after pass 'some_pass'",
                          broken.rule)
        << broken.lines;
}

void expect_whole(std::initializer_list<const char*> lines) {
  for (const char* line : lines) EXPECT_NO_THROW(program_of(kGiven + line)) << line;
}

TEST(Verify, Contract) {
  expect_whole({"%20 f32 [a=4 c=16] = contract %0, %1", "%20 f32 [c=16 a=4 b=8] = contract %0, %1"});
  expect_broken({{"%20 f32 [a=4] = contract %0, %1", "dim 'c', absent from the output, is in both operands"},
                 {"%20 f32 [a=4 c=16 z=2] = contract %0, %1", "output dim 'z' is in an operand"},
                 {"%20 f32 [a=2 c=16] = contract %0, %1", "dim 'a' has one local size"},
                 {"%20 f32 [a=4 c=16] = contract %0", "takes 2 operands"},
                 {"%20 i32 [a=4 c=16] = contract %0, %1", "multiplies floats to floats, integers to integers"},
                 {"%20 f32 [a=4 b=8] = contract %0, %2", "multiplies floats to floats"}});
}

TEST(Verify, Map) {
  expect_whole({"%20 f32 [b=8 a=4 z=3] = map %0, %2 expr=select(equal(index(z), $1), $0, 0:f32)",
                "%20 f32 [z=3] = map expr=0:f32"});
  expect_broken(
      {{"%20 f32 [a=4] = map %0 expr=$0", "dim 'b' of operand 0 is in the output"},
       {"%20 f32 [a=4 b=8] = map %0 expr=index<f32>(z)", "index dim 'z' is in the output"},
       {"%20 bf16 [a=4 b=8] = map %0 expr=$0", "the last node has the output's dtype"},
       {"%20 f32 [a=4 b=8] = map %0, %2 expr=add($0, $1)", "'add' takes operands of one dtype, not f32 and i32"},
       {"%20 f32 [a=4 b=8] = map %0 expr=add($0)", "'add' takes 2 operands, not 1"},
       {"%20 f32 [a=4 b=8] = map %0 expr=exp<f32>()", "'exp' takes 1 operand, not 0"},
       {"%20 f32 [a=4 b=8] = map %0 expr=cast<f32>($0, $0)", "'cast' takes one arg"},
       {"%20 f32 [a=4 b=8] = map %0 expr=tahn($0)", "there is no pointwise function 'tahn': did you mean 'tanh'?"},
       {"%20 f32 [a=4 b=8] = map %0 expr=square<f32>($0, $0)", "'square' takes 1 operand, not 2"},
       {"%20 i32 [a=4] = map %2 expr=exp($0)", "'exp' takes no i32"},
       {"%20 bool [a=4 b=8] = map %7 expr=negative($0)", "'negative' takes no bool"},
       {"%20 bf16 [a=4 b=8] = map %0 expr=tanh<bf16>($0)", "'tanh' of f32 gives f32, not bf16"},
       {"%20 f32 [a=4 b=8] = map %0 expr=less<f32>($0, $0)", "'less' of f32 gives bool, not f32"},
       {"%20 f32 [a=4 b=8] = map %0 expr=select($0, $0, $0)", "select takes a bool"},
       {"%20 f32 [a=4 b=8] = map %0, %7 expr=select<f32>($1, $0, 1:f64)", "dtype of its values"}});
  Program p = program_of(kGiven + "%20 f32 [a=4 b=8] = map %0 expr=exp($0)");
  auto& nodes = std::get<Map>(p.body[0].operation).nodes;
  nodes[1].args = {1};
  EXPECT_INTERNAL_ERROR(verify(p, "x"), "args are earlier nodes");
  nodes[1].args = {0};
  nodes[0].input = 1;
  EXPECT_INTERNAL_ERROR(verify(p, "x"), "inputs are in range");
  nodes[0] = {.op = "input", .args = {}, .dtype = DType::kF64, .dim = {}};
  EXPECT_INTERNAL_ERROR(verify(p, "x"), "$0 has its operand's dtype");
  nodes.clear();
  EXPECT_INTERNAL_ERROR(verify(p, "x"), "a map has nodes");
}

TEST(Verify, Moves) {
  expect_whole(
      {"%20 f32 [b=8 a=4] = copy %0", "%20 f32 [a=8 b=8] = concat %0, %0 dim=a",
       "%20 f32 [a=4 b=2] = dynamic_slice %0, %3 dim=b", "%20 f32 [a=4 b=2] = dynamic_slice %0, %2 dim=b",
       "%20 f32 [a=4 b=2] = dynamic_slice %0, %3 dim=b\n%21 f32 [a=4 b=8] = dynamic_update %0, %20, %3 dim=b",
       "%20 f32 [a=4 b=2] = dynamic_slice %0, %3 dim=b\n%21 f32 [a=4 b=8] = dynamic_update %0, %20, %2 dim=a"});
  expect_broken(
      {{"%20 f32 [b=8] = copy %0", "a copy keeps the dims"},
       {"%20 f32 [a=4 b=8] = copy %4", "a copy keeps the sharding"},
       {"%20 f32 [a=4 b=8] = copy %8", "one dtype"},
       {"%20 f32 [a=7 b=8] = concat %0, %0 dim=a", "sizes along the dim add up"},
       {"%20 f32 [a=8 b=8] = concat %0, %1 dim=a", "every operand has the dim"},
       {"%20 f32 [a=8 b=4] = concat %0, %0 dim=a", "has the output's other dims"},
       {"%20 f32 [a=4 b=9] = dynamic_slice %0, %3 dim=b", "takes no more than there is"},
       {"%20 f32 [a=4 b=2] = dynamic_slice %0, %1 dim=b", "the offset is an integer"},
       {"%20 f32 [a=2 b=8] = dynamic_slice %0, %2 dim=a", "dim 'a' of the offset is another dim of the operand"},
       {"%20 f32 [a=2 b=2] = dynamic_slice %0, %3 dim=b", "the other dims are kept"},
       {"%20 f32 [a=4 b=8] = dynamic_update %0, %1, %3 dim=b", "the piece has the other dims"},
       {"%20 f32 [a=4 b=9] = dynamic_update %0, %0, %3 dim=b", "keeps the shape"},
       {"%20 f32 [a=2 b=8] = dynamic_slice %0, %3 dim=a\n%21 f32 [a=4 b=8] = dynamic_update %0, %20, %2 dim=a",
        "an offset with the dim has the piece's size of it, and no other dim"}});
}

TEST(Verify, IndexedWork) {
  expect_whole({"%20 f32 [a=4 c=16] = gather %1, %2 dim=b", "%20 f32 [a=4] = gather %0, %2 dim=b",
                "%20 f32 [n=32 b=8] = scatter_add %2, %0 dim=n",
                "%20 f32 [a=4 b=8] = scan %0 dim=b how=max exclusive=true reverse=true",
                "%20 f32 [a=4 k=2], %21 i32 [a=4 k=2] = sort %0 dim=b k=k ascending=false"});
  expect_broken(
      {{"%20 f32 [a=4 c=16] = gather %1, %0 dim=b", "indices are integers"},
       {"%20 f32 [a=4 c=16] = gather %1, %2 dim=z", "the operand has the dim"},
       {"%20 f32 [a=4 c=16 b=8] = gather %1, %2 dim=b", "gives the operand's other dims"},
       {"%20 f32 [n=32 z=8] = scatter_add %2, %0 dim=n", "output dim 'z' is in an operand"},
       {"%20 f32 [n=32 b=4] = scatter_add %2, %0 dim=n", "dim 'b' has one local size"},
       {"%20 f64 [n=32 b=8] = scatter_add %2, %0 dim=n", "keeps the dtype"},
       {"%20 f64 [a=4] = reduce %0 how=sum", "operands and output have one dtype"},
       {"%20 f32 [a=4] = scan %0 dim=b how=max exclusive=true reverse=true", "keeps dtype and dims"},
       {"%20 f32 [a=4 k=9], %21 i32 [a=4 k=9] = sort %0 dim=b k=k ascending=false", "k is at most"},
       {"%20 f32 [a=4 k=2], %21 i64 [a=4 k=2] = sort %0 dim=b k=k ascending=false", "indices in i32"},
       {"%20 f32 [a=2 k=2], %21 i32 [a=2 k=2] = sort %0 dim=b k=k ascending=false", "the other dims are kept"}});
}

TEST(Verify, Sources) {
  expect_whole({"%20 f32 [a=4] {a:data} = random distribution=normal a=0 b=1 key=3",
                "%20 i64 [] = axis_index axes=data+model", "%20 f32 [n=2] = constant data=[1 2]",
                "host %0 what=metric text=x"});
  expect_broken({{"%20 f32 [a=4] = random distribution=bits a=0 b=1 key=3", "bits are u32"},
                 {"%20 i32 [] = axis_index axes=data", "gives an i64 scalar"},
                 {"%20 i64 [] = axis_index axes=data+data", "an axis occurs once"},
                 {"%20 f32 [n=2] = constant data=[1]", "one number per element"},
                 {"host %0 what=mail text=x", "hands over to print or metric"},
                 {"host %5 what=print text=x", "what the host gets waits for no reduction"}});
}

TEST(Verify, ViewsStayInside) {
  expect_whole(
      {"%20 f32 [b=8 a=4] = view %0 offset=0 strides=[1 8]", "%20 f32 [b=8] = view %0 offset=31 strides=[-1]",
       "%20 f32 [z=99] = view %0 offset=3 strides=[0]",
       "%20 f32 [a=2 b=8] {a:data} = shard %0 dim=a axes=data\n%21 f32 [b=16] = view %20 offset=0 strides=[1]"});
  expect_broken(
      {{"%20 f32 [b=8 a=4] = view %0 offset=1 strides=[1 8]", "a view stays inside"},
       {"%20 f32 [b=8] = view %0 offset=6 strides=[-1]", "a view stays inside"},
       {"%20 f32 [b=8] = view %0 offset=0 strides=[1 1]", "one stride per output dim"},
       {"%20 f32 [b=8] = view %0 offset=0 strides=[9000000000000]", "a view stays inside"},
       {"%20 f32 [a=2 b=8] {a:data} = shard %0 dim=a axes=data\n%21 f32 [b=17] = view %20 offset=0 strides=[1]",
        "a view stays inside"},
       {"%20 f32 [b=8] = view %0 offset=24 strides=[1]\n%21 f32 [b=9] = view %20 offset=0 strides=[1]",
        "a view stays inside"},
       // Backwards: the second processor's shard begins lower than the first's.
       {"%20 f32 [b=32] = view %0 offset=31 strides=[-1]\n%21 f32 [b=16] {b:data} = shard %20 dim=b axes=data\n"
        "%22 f32 [b=17] = view %21 offset=0 strides=[-1]",
        "a view stays inside"}});
}

TEST(Verify, OutputsAreDense) {
  expect_whole({"%20 f32 [a=4 b=8] = view %0 offset=0 strides=[8 1]\noutput y %20",
                "%20 f32 [z=1 b=8] = view %0 offset=8 strides=[77 1]\noutput y %20"});
  expect_broken({{"%20 f32 [b=8 a=4] = view %0 offset=0 strides=[1 8]\noutput y %20", "an output is dense"},
                 {"%20 f32 [z=99] = view %0 offset=3 strides=[0]\noutput y %20", "an output is dense"}});
}

TEST(Verify, SpeaksOfTextFromOutsideAsTheUsers) {
  const std::string head = "weft program 1\nmesh data:2\ninput x %0 f32 [a=4]\n";
  EXPECT_EQ(to_text(parse_verified(head + "end\n")), to_text(parse_program(head + "end\n")));
  EXPECT_USER_ERROR(
      parse_verified(head + "%1 f32 [a=5] = copy %0\nend\n"), "the program breaks a rule: a copy keeps the dims",
      "where: program text: %1 f32 [a=5] {} = copy %0", "compare the line with what weft explain --program writes");
  EXPECT_USER_ERROR(parse_verified(head), "the text breaks off");
}

TEST(Verify, Collectives) {
  expect_whole({"%20 f32 [a=4 b=8] = all_reduce %5 how=sum axes=data",
                "%20 f32 [a=8 b=8] = all_gather %4 dim=a axes=data",
                "%20 f32 [a=4 b=8], %21 f32 [a=4 b=8] {| sum:model} = all_reduce %5, %10 how=sum axes=data",
                "%20 f32 [a=2 b=8] {a:data} = reduce_scatter %5 how=sum dim=a axes=data",
                "%20 f32 [a=8 b=4] {b:data} = all_to_all %4 split=b gather=a axes=data",
                "%20 f32 [a=4 b=8] = permute %0 axes=data to=[1 0]"});
  expect_broken({{"%20 f32 [a=4 b=8] = all_reduce %5 how=max axes=data", "operand 0 waits for max"},
                 {"%20 f32 [a=4 b=8] = all_reduce %5 how=sum axes=model", "not pending"},
                 {"%20 f32 [a=4 b=8] = all_reduce %5 how=sum axes=-", "at least one axis"},
                 {"%20 f32 [a=4 b=8] {a:data} = all_reduce %5 how=sum axes=data", "output 0 is f32 [a=4 b=8] {}"},
                 {"%20 f32 [a=4 b=8] = all_reduce %10 how=sum axes=data", "output 0 is f32 [a=4 b=8] {| sum:model}"},
                 {"%20 f32 [a=8 b=8] = all_gather %4 dim=b axes=data", "not the minor axes"},
                 {"%20 f32 [a=4 b=8] {a:data} = reduce_scatter %5 how=sum dim=a axes=data", "output 0 is"},
                 {"%20 f32 [a=4 b=8] {a:data} = all_to_all %4 split=a gather=a axes=data", "splits one dim"},
                 {"%20 f32 [a=4 b=8] = permute %0 axes=data to=[1 1]", "no two ranks send to one"},
                 {"%20 f32 [a=4 b=8] = permute %0 axes=data to=[1]", "one target per rank"},
                 {"%20 f32 [a=4 b=8] = permute %0 axes=data to=[2 -1]", "targets are ranks"},
                 {"%20 f32 [a=4 b=8] {a:one} = shard %0 dim=a axes=model", "output 0 is"},
                 {"%20 f32 [a=4 b=2] = shard %0 dim=c axes=model", "the operand has the dim"}});
}

TEST(Verify, NumbersFitTheirDtype) {
  expect_whole({"%20 u8 [a=4] = map expr=255:u8", "%20 i64 [] = map expr=9223372036854775807:i64",
                "%20 f16 [] = map expr=-inf:f16", "%20 i32 [n=2] = constant data=[-2147483648 2147483647]"});
  expect_broken({{"%20 u8 [a=4] = map expr=300:u8", "a literal of u8 is a number that u8 holds"},
                 {"%20 i32 [] = map expr=2.5:i32", "a literal of i32 is a number that i32 holds"},
                 {"%20 f16 [] = map expr=70000:f16", "a literal of f16 is a number that f16 holds"},
                 {"%20 u32 [n=2] = constant data=[1 -1]", "numbers that the dtype holds"}});
}

TEST(Verify, SumsPassWhatIsLinear) {
  const std::string pending = " f32 [a=4 b=8] {| sum:data} = ";
  for (const char* line :
       {"map %5 expr=negative($0)", "map %5, %0 expr=multiply($0, $1)", "map %0, %5 expr=multiply($0, $1)",
        "map %5, %0 expr=divide($0, $1)", "map %5, %5 expr=add($0, subtract($1, $0))",
        "map %5, %7 expr=select($1, $0, 0:f32)", "map %5 expr=multiply($0, 65536:f32)", "map %5 expr=add($0, 0:f32)",
        "copy %5", "view %5 offset=0 strides=[8 1]", "dynamic_update %5, %5, %3 dim=a",
        "scan %5 dim=a how=sum exclusive=false reverse=false"})
    EXPECT_NO_THROW(program_of(kGiven + "%20" + pending + line)) << line;
  expect_whole({"%20 f64 [a=4 b=8] {| sum:data} = map %5 expr=cast<f64>($0)",
                "%20 f32 [a=4 c=16] {| sum:data} = contract %5, %1", "%20 f32 [a=4] {| sum:data} = reduce %5 how=sum",
                "%20 f32 [a=8 b=8] {| sum:data} = concat %5, %5 dim=a",
                "%20 f32 [a=4 b=2] {| sum:data} = dynamic_slice %5, %3 dim=b",
                "%20 f32 [a=4] {| sum:data} = gather %5, %2 dim=b",
                "%20 f32 [n=9 b=8] {| sum:data} = scatter_add %2, %5 dim=n",
                "%20 f32 [a=4 b=2] {b:model | sum:data} = shard %5 dim=b axes=model",
                "%20 f32 [a=4 b=8] = map %9 expr=exp($0)"});
}

TEST(Verify, SumsPassNothingElse) {
  const std::string pending = "%20 f32 [a=4 b=8] {| sum:data} = ";
  for (const char* line :
       {"map %5 expr=exp($0)", "map %5, %0 expr=add($0, $1)", "map %5, %5 expr=multiply($0, $1)",
        "map %5, %0 expr=divide($1, $0)", "map %5 expr=add($0, 1:f32)", "map %5, %7 expr=select($1, $0, 1:f32)",
        "map %5 expr=cast<f32>(cast<bf16>($0))", "map %5, %0 expr=select(less($0, $1), $1, $1)",
        "dynamic_update %5, %0, %3 dim=a", "scan %5 dim=a how=max exclusive=false reverse=false",
        "map %5 expr=multiply($0, 1e30:f32)", "map %5 expr=divide($0, 1e-30:f32)", "map %5 expr=multiply($0, nan:f32)",
        "map %5 expr=cast<f32>(cast<f64>($0))"}) {
    EXPECT_INTERNAL_ERROR(verify(raw_program_of(kGiven + pending + line), "p"), "cannot pass this") << line;
  }
  expect_broken({{"%20 f32 [a=4 c=16] = contract %5, %1", "is pending in %20 too"},
                 {"%20 f32 [a=4 b=8] {| sum:data} = contract %5, %5", "cannot pass this"},
                 {"%20 f32 [a=4] {| sum:data} = reduce %5 how=max", "cannot pass this"},
                 {"%20 f32 [a=4 b=8] {| sum:data} = map %5, %4 expr=multiply($0, $1)", "is split over axis 'data'"},
                 {"%20 f32 [a=4 b=8] {| sum:data} = map %5, %6 expr=add($0, $1)", "one kind of reduction"},
                 {"%20 f32 [a=8 b=8] {| sum:data} = concat %5, %0 dim=a", "cannot pass this"},
                 {"%20 f32 [a=4 k=2] {| sum:data}, %21 i32 [a=4 k=2] {| sum:data} = sort %5 dim=b k=k ascending=false",
                  "cannot pass this"},
                 {"%20 f32 [a=4 b=8] {| max:data} = copy %5", "the sum over axis 'data' is pending in %20 too"}});
}

TEST(Verify, MaximaPassWhatIsMonotone) {
  const std::string pending = "%20 f32 [a=4 b=8] {| max:data} = ";
  for (const char* line :
       {"map %6 expr=exp($0)", "map %6 expr=tanh($0)", "map %6 expr=add($0, 2:f32)", "copy %6",
        "map %6 expr=multiply($0, 2:f32)", "map %6, %6 expr=maximum($0, $1)", "map %6 expr=cast<f32>(cast<bf16>($0))",
        "map %6, %0 expr=maximum($0, $1)", "map %6 expr=subtract($0, 1e30:f32)", "map %6 expr=multiply(1e30:f32, $0)"})
    EXPECT_NO_THROW(program_of(kGiven + pending + line)) << line;
  for (const char* line :
       {"map %6 expr=negative($0)", "map %6, %6 expr=add($0, $1)", "map %6, %0 expr=subtract($1, $0)",
        "map %6 expr=multiply($0, -2:f32)", "map %6, %6 expr=minimum($0, $1)", "map %6, %0 expr=multiply($0, $1)",
        "map %6 expr=sin($0)", "map %6 expr=log($0)", "map %6 expr=sqrt($0)", "map %6, %0 expr=add($0, $1)",
        "map %6, %0 expr=subtract($0, $1)", "map %6 expr=multiply($0, 0:f32)", "map %6 expr=add($0, inf:f32)",
        "map %6 expr=multiply($0, inf:f32)", "map %6 expr=multiply($0, 1e-45:f32)",
        "map %6 expr=cast<f32>(cast<i32>($0))"})
    EXPECT_INTERNAL_ERROR(verify(raw_program_of(kGiven + pending + line), "p"), "cannot pass this") << line;
  expect_whole({"%20 f32 [a=4] {| max:data} = reduce %6 how=max"});
  expect_broken({{"%20 f32 [a=4] {| max:data} = reduce %6 how=sum", "cannot pass this"},
                 {"%20 f32 [a=4 c=16] {| max:data} = contract %6, %1", "cannot pass this"}});
}

// Of integers, which wrap.
TEST(Verify, MaximaOfIntegersPassNoArithmetic) {
  for (const char* dtype : {"u8", "u32", "i32", "i64"}) {
    const std::string x = str("input n %20 ", dtype, " [a=4] {| max:data}\ninput m %21 ", dtype, " [a=4]\n");
    const std::string pending = str("%22 ", dtype, " [a=4] {| max:data} = map ");
    for (const std::string& line : {std::string("%20, %21 expr=maximum($0, $1)"),
                                    str("%20 expr=maximum($0, 5:", dtype, ")"), std::string("%20 expr=identity($0)")})
      EXPECT_NO_THROW(program_of(kGiven + x + pending + line)) << line;
    for (const std::string& line :
         {str("%20 expr=add($0, 5:", dtype, ")"), str("%20 expr=subtract($0, 5:", dtype, ")"),
          str("%20 expr=multiply($0, 3:", dtype, ")"), std::string("%20, %21 expr=add($0, $1)"),
          str("%20 expr=cast<", dtype, ">(cast<bool>($0))")})
      EXPECT_INTERNAL_ERROR(verify(raw_program_of(kGiven + x + pending + line), "p"), "cannot pass this") << line;
  }
  const auto cast = [](const char* from, const char* to) {
    return str("input n %20 ", from, " [a=4] {| max:data}\n%21 ", to, " [a=4] {| max:data} = map %20 expr=cast<", to,
               ">($0)");
  };
  for (const auto& [from, to] : {std::pair("u8", "i32"), {"u8", "u32"}, {"i32", "i64"}, {"u32", "i64"}, {"i64", "f16"}})
    EXPECT_NO_THROW(program_of(kGiven + cast(from, to))) << from << to;
  for (const auto& [from, to] :
       {std::pair("i32", "u8"), {"i32", "u32"}, {"u32", "i32"}, {"i64", "i32"}, {"f32", "i64"}})
    EXPECT_INTERNAL_ERROR(verify(raw_program_of(kGiven + cast(from, to)), "p"), "cannot pass this") << from << to;
}

TEST(Verify, ValuesAndNames) {
  expect_broken({{"%20 f32 [a=4 b=8] {a:data b:data} = map %0 expr=$0", "an axis occurs once in the sharding of %20"},
                 {"%20 f32 [a=4 b=8] {a:data | sum:data} = map %0 expr=$0", "an axis occurs once"},
                 {"%20 f32 [a=4 b=8] {| sum:model+data} = copy %10", "pending axes of %20 ascend"},
                 {"input x %20 f32 [a=4]", "names occur once"},
                 {"output y %5", "an output waits for no reduction"},
                 {"variable w %20 f32 [a=4 b=8] trainable update=%5", "an update waits for no reduction"},
                 {"variable w %20 f32 [a=4 b=8] trainable update=%4", "an update has the variable's type"},
                 {"variable w %20 f32 [a=4 b=8] trainable update=%8", "an update has the variable's type"}});
  Program p = program_of(kGiven + "%20 f32 [a=4 b=8] = copy %0\n%21 f32 [a=4 b=8] = copy %20\noutput y %21");
  std::swap(p.body[0], p.body[1]);
  EXPECT_INTERNAL_ERROR(verify(p, "x"), "%20 is defined before it is used", "in: %21 f32 [a=4 b=8] {} = copy %20");
  std::swap(p.body[0], p.body[1]);
  p.body[1].outputs[0] = ValueId(20);
  EXPECT_INTERNAL_ERROR(verify(p, "x"), "%20 is defined once");
  p.body[1].outputs[0] = ValueId(99);
  EXPECT_INTERNAL_ERROR(verify(p, "x"), "%99 is a value of the program");
  p.body[1].outputs[0] = ValueId(21);
  p.values[ValueId(21)].sharding.dims[0] = {7};
  EXPECT_INTERNAL_ERROR(verify(p, "x"), "axes of %21 are in the mesh");
  p.values[ValueId(21)].sharding.dims = {{}};
  EXPECT_INTERNAL_ERROR(verify(p, "x"), "has axes for each of its dims");
}

}  // namespace
}  // namespace weft::verify_test
