module @weft attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%0: tensor<2x3xf32> loc("x [a=2 b=3]"),
      %1: tensor<3xf32> loc("y [b=3]"),
      %2: tensor<2xbf16> loc("h [a=2]"),
      %3: tensor<2xi1> loc("c [a=2]"),
      %4: tensor<2xui32> loc("seed [word=2]"),
      %5: tensor<ui32> loc("step []"))
      -> (tensor<3x2xf32>, tensor<2xbf16>, tensor<2xi32>, tensor<2x3xui8>) {
    %6 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32> loc(#loc0)
    %7 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<3xf32>) -> tensor<3x2xf32> loc(#loc0)
    %8 = stablehlo.multiply %6, %7 : tensor<3x2xf32> loc(#loc0)
    %9 = stablehlo.constant dense<2.0> : tensor<3x2xf32> loc(#loc0)
    %10 = stablehlo.add %8, %9 : tensor<3x2xf32> loc(#loc0)
    %11 = stablehlo.convert %2 : (tensor<2xbf16>) -> tensor<2xf32> loc(#loc1)
    %12 = stablehlo.tanh %11 : tensor<2xf32> loc(#loc1)
    %13 = stablehlo.convert %12 : (tensor<2xf32>) -> tensor<2xbf16> loc(#loc1)
    %14 = stablehlo.iota dim = 0 : tensor<2xi64> loc(#loc1)
    %15 = "stablehlo.replica_id"() : () -> tensor<ui32> loc(#loc1)
    %16 = stablehlo.convert %15 : (tensor<ui32>) -> tensor<i64> loc(#loc1)
    %17 = stablehlo.constant dense<2> : tensor<i64> loc(#loc1)
    %18 = stablehlo.multiply %16, %17 : tensor<i64> loc(#loc1)
    %19 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<i64>) -> tensor<2xi64> loc(#loc1)
    %20 = stablehlo.add %14, %19 : tensor<2xi64> loc(#loc1)
    %21 = stablehlo.convert %20 : (tensor<2xi64>) -> tensor<2xi32> loc(#loc1)
    %22 = stablehlo.constant dense<7> : tensor<2xi32> loc(#loc1)
    %23 = stablehlo.select %3, %21, %22 : tensor<2xi1>, tensor<2xi32> loc(#loc1)
    %24 = stablehlo.convert %0 : (tensor<2x3xf32>) -> tensor<2x3xui8> loc(#loc2)
    return %10, %13, %23, %24 : tensor<3x2xf32>, tensor<2xbf16>, tensor<2xi32>, tensor<2x3xui8>
  }
}
#loc0 = loc(" [b=3 a=2] = map")
#loc1 = loc(" [a=2] = map")
#loc2 = loc(" [a=2 b=3] = map")
