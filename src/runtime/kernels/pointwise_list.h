// The names of all pointwise functions, once: of numbers of every kind, of floats only, of integers and bools only.
// Tables are made by handing macros to these lists.
#pragma once

#define WEFT_POINTWISE_UNARY(both, floats, integers)                                                              \
  both(identity) both(negative) both(abs) both(sign) both(floor) both(square) floats(sqrt) floats(rsqrt)          \
      floats(reciprocal) floats(exp) floats(expm1) floats(log) floats(log1p) floats(sin) floats(cos) floats(tanh) \
          floats(erf) floats(sigmoid) floats(softplus) floats(relu) floats(elu) floats(selu) integers(logical_not)

#define WEFT_POINTWISE_BINARY(both, floats, integers)                                                           \
  both(add) both(subtract) both(multiply) floats(divide) floats(pow) both(minimum) both(maximum) both(floordiv) \
      both(mod) integers(logical_and) integers(logical_or)

// Of two numbers of one kind; they give a bool.
#define WEFT_POINTWISE_COMPARISON(both) \
  both(less) both(less_equal) both(greater) both(greater_equal) both(equal) both(not_equal)
