module @weft attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%0: tensor<2x4xf32> loc("x [a=2 b=4]"),
      %1: tensor<4xf32> loc("w [b=4]"),
      %2: tensor<2xui32> loc("seed [word=2]"),
      %3: tensor<ui32> loc("step []"))
      -> (tensor<2xf32>) {
    %4 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32> loc(#loc0)
    %5 = stablehlo.multiply %0, %4 : tensor<2x4xf32> loc(#loc0)
    %6 = stablehlo.constant dense<0.0> : tensor<f32> loc(#loc1)
    %7 = stablehlo.reduce(%5 init: %6) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32> loc(#loc1)
    %8 = stablehlo.constant dense<2.0> : tensor<2xf32> loc(#loc2)
    %9 = stablehlo.multiply %7, %8 : tensor<2xf32> loc(#loc2)
    %10:2 = stablehlo.optimization_barrier %0, %9 : tensor<2x4xf32>, tensor<2xf32> loc(#loc0)
    %11:2 = stablehlo.optimization_barrier %1, %9 : tensor<4xf32>, tensor<2xf32> loc(#loc0)
    %12 = stablehlo.broadcast_in_dim %11#0, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32> loc(#loc0)
    %13 = stablehlo.multiply %10#0, %12 : tensor<2x4xf32> loc(#loc0)
    %14 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc1)
    %15 = stablehlo.reduce(%13 init: %14) applies stablehlo.maximum across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32> loc(#loc1)
    %16 = stablehlo.add %9, %15 : tensor<2xf32> loc(#loc2)
    return %16 : tensor<2xf32>
  }
}
#loc0 = loc(" [a=2 b=4] = map")
#loc1 = loc(" [a=2] = reduce")
#loc2 = loc(" [a=2] = map")
