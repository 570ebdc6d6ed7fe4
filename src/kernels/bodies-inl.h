// Before pointwise-inl.h: makes a struct of every entry, so that tanh()(x) is its body. The includer says WEFT_FN and
// `namespace math`, and includes this file inside a separate namespace, since the structs have the names of the
// functions.
#define WEFT_UNARY(name, takes, gives, flops, algebra, ...) \
  struct name {                                             \
    template <class V>                                      \
    WEFT_FN auto operator()(V x) const {                    \
      return __VA_ARGS__;                                   \
    }                                                       \
  };
#define WEFT_BINARY(name, takes, gives, flops, algebra, ...) \
  struct name {                                              \
    template <class V>                                       \
    WEFT_FN auto operator()(V x, V y) const {                \
      return __VA_ARGS__;                                    \
    }                                                        \
  };
