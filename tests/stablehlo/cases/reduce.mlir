module @weft attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<2x3x4xbf16> loc("x [a=2 b=3 c=4]"),
      %1: tensor<2x3xi1> loc("t [a=2 b=3]"),
      %2: tensor<2xui32> loc("seed [word=2]"),
      %3: tensor<ui32> loc("step []"))
      -> (tensor<4x2xbf16>, tensor<bf16>, tensor<3xi1>) {
    %4 = stablehlo.convert %0 : (tensor<2x3x4xbf16>) -> tensor<2x3x4xf32> loc(#loc0)
    %5 = stablehlo.constant dense<0.0> : tensor<f32> loc(#loc0)
    %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [1] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x4xf32> loc(#loc0)
    %7 = stablehlo.transpose %6, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32> loc(#loc0)
    %8 = stablehlo.convert %7 : (tensor<4x2xf32>) -> tensor<4x2xbf16> loc(#loc0)
    %9 = stablehlo.convert %0 : (tensor<2x3x4xbf16>) -> tensor<2x3x4xf32> loc(#loc1)
    %10 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc1)
    %11 = stablehlo.reduce(%9 init: %10) applies stablehlo.maximum across dimensions = [0, 1, 2] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<f32> loc(#loc1)
    %12 = stablehlo.convert %11 : (tensor<f32>) -> tensor<bf16> loc(#loc1)
    %13 = stablehlo.constant dense<true> : tensor<i1> loc(#loc2)
    %14 = stablehlo.reduce(%1 init: %13) applies stablehlo.and across dimensions = [0] : (tensor<2x3xi1>, tensor<i1>) -> tensor<3xi1> loc(#loc2)
    return %8, %12, %14 : tensor<4x2xbf16>, tensor<bf16>, tensor<3xi1>
  }
}
#loc0 = loc(" [c=4 a=2] = reduce")
#loc1 = loc(" [] = reduce")
#loc2 = loc(" [b=3] = reduce")
