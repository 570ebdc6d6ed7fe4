module @weft attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<4x3xf32> loc("x [a=4 b=3]"),
      %1: tensor<4x3xf32> {tf.aliasing_output = 1 : i32} loc("w [a=4 b=3]"),
      %2: tensor<2xui32> loc("seed [word=2]"),
      %3: tensor<ui32> loc("step []"))
      -> (tensor<4xf32>, tensor<4x3xf32>) {
    %4 = stablehlo.multiply %0, %1 : tensor<4x3xf32> loc(#loc0)
    %5 = stablehlo.constant dense<0.0> : tensor<f32> loc(#loc1)
    %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32> loc(#loc1)
    %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<4xf32>) -> tensor<4x3xf32> loc(#loc2)
    %8 = stablehlo.subtract %4, %7 : tensor<4x3xf32> loc(#loc2)
    return %6, %8 : tensor<4xf32>, tensor<4x3xf32>
  }
}
#loc0 = loc(" [a=4 b=3] = map @ net.cc:3 multiply")
#loc1 = loc(" [a=4] = reduce @ net.cc:4 sum")
#loc2 = loc(" [a=4 b=3] = map")
