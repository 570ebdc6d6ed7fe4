module @weft attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<2x3x4xf32> loc("x [a=2 b=3 c=4]"),
      %1: tensor<4x2x5xf32> loc("y [c=4 a=2 d=5]"),
      %2: tensor<2x4xbf16> loc("p [a=2 c=4]"),
      %3: tensor<4x5xbf16> loc("q [c=4 d=5]"),
      %4: tensor<2x4xi32> loc("i [a=2 c=4]"),
      %5: tensor<4xi32> loc("j [c=4]"),
      %6: tensor<2xui32> loc("seed [word=2]"),
      %7: tensor<ui32> loc("step []"))
      -> (tensor<5x2x3xf32>, tensor<2x5xbf16>, tensor<2x5xf32>, tensor<2xi32>) {
    %8 = stablehlo.dot_general %0, %1, batching_dims = [0] x [1], contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2x3x4xf32>, tensor<4x2x5xf32>) -> tensor<2x3x5xf32> loc(#loc0)
    %9 = stablehlo.transpose %8, dims = [2, 0, 1] : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32> loc(#loc0)
    %10 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<2x4xbf16>, tensor<4x5xbf16>) -> tensor<2x5xf32> loc(#loc1)
    %11 = stablehlo.convert %10 : (tensor<2x5xf32>) -> tensor<2x5xbf16> loc(#loc1)
    %12 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<2x4xbf16>, tensor<4x5xbf16>) -> tensor<2x5xf32> loc(#loc1)
    %13 = stablehlo.dot_general %4, %5, contracting_dims = [1] x [0] : (tensor<2x4xi32>, tensor<4xi32>) -> tensor<2xi32> loc(#loc2)
    return %9, %11, %12, %13 : tensor<5x2x3xf32>, tensor<2x5xbf16>, tensor<2x5xf32>, tensor<2xi32>
  }
}
#loc0 = loc("dot [d=5 a=2 b=3] = contract @ model.cc:12 einsum")
#loc1 = loc(" [a=2 d=5] = contract")
#loc2 = loc(" [a=2] = contract")
