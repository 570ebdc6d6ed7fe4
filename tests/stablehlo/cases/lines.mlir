module @weft attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%0: tensor<2x5xf32> loc("x [a=2 b=5]"),
      %1: tensor<2x5xi32> loc("i [a=2 b=5]"),
      %2: tensor<2xui32> loc("seed [word=2]"),
      %3: tensor<ui32> loc("step []"))
      -> (tensor<2x5xf32>, tensor<2x5xf32>, tensor<1x5xi32>, tensor<2x3xi32>) {
    %4 = stablehlo.constant dense<0.0> : tensor<f32> loc(#loc0)
    %5 = stablehlo.pad %0, %4, low = [0, 1], high = [0, -1], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %6 = stablehlo.pad %5, %4, low = [0, 1], high = [0, -1], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %7 = stablehlo.add %6, %5 : tensor<2x5xf32> loc(#loc0)
    %8 = stablehlo.pad %7, %4, low = [0, 2], high = [0, -2], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %9 = stablehlo.add %8, %7 : tensor<2x5xf32> loc(#loc0)
    %10 = stablehlo.pad %9, %4, low = [0, 4], high = [0, -4], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %11 = stablehlo.add %10, %9 : tensor<2x5xf32> loc(#loc0)
    %12 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc0)
    %13 = stablehlo.pad %0, %12, low = [0, -1], high = [0, 1], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %14 = stablehlo.maximum %13, %0 : tensor<2x5xf32> loc(#loc0)
    %15 = stablehlo.pad %14, %12, low = [0, -2], high = [0, 2], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %16 = stablehlo.maximum %15, %14 : tensor<2x5xf32> loc(#loc0)
    %17 = stablehlo.pad %16, %12, low = [0, -4], high = [0, 4], interior = [0, 0] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %18 = stablehlo.maximum %17, %16 : tensor<2x5xf32> loc(#loc0)
    %19 = stablehlo.iota dim = 0 : tensor<2xi32> loc(#loc1)
    %20 = "stablehlo.replica_id"() : () -> tensor<ui32> loc(#loc1)
    %21 = stablehlo.convert %20 : (tensor<ui32>) -> tensor<i64> loc(#loc1)
    %22 = stablehlo.constant dense<2> : tensor<i64> loc(#loc1)
    %23 = stablehlo.multiply %21, %22 : tensor<i64> loc(#loc1)
    %24 = stablehlo.convert %23 : (tensor<i64>) -> tensor<i32> loc(#loc1)
    %25 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<i32>) -> tensor<2xi32> loc(#loc1)
    %26 = stablehlo.add %19, %25 : tensor<2xi32> loc(#loc1)
    %27 = stablehlo.broadcast_in_dim %26, dims = [0] : (tensor<2xi32>) -> tensor<2x5xi32> loc(#loc1)
    %28:2 = "stablehlo.sort"(%0, %27) ({
    ^bb0(%29: tensor<f32>, %30: tensor<f32>, %31: tensor<i32>, %32: tensor<i32>):
      %33 = stablehlo.compare GT, %29, %30, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc1)
      %34 = stablehlo.compare NE, %29, %29, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc1)
      %35 = stablehlo.compare NE, %30, %30, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc1)
      %36 = stablehlo.not %35 : tensor<i1> loc(#loc1)
      %37 = stablehlo.and %34, %36 : tensor<i1> loc(#loc1)
      %38 = stablehlo.or %33, %37 : tensor<i1> loc(#loc1)
      "stablehlo.return"(%38) : (tensor<i1>) -> ()
    }) {dimension = 0 : i64, is_stable = true} : (tensor<2x5xf32>, tensor<2x5xi32>) -> (tensor<2x5xf32>, tensor<2x5xi32>) loc(#loc1)
    %39 = stablehlo.slice %28#0 [0:1, 0:5] : (tensor<2x5xf32>) -> tensor<1x5xf32> loc(#loc1)
    %40 = stablehlo.slice %28#1 [0:1, 0:5] : (tensor<2x5xi32>) -> tensor<1x5xi32> loc(#loc1)
    %41:2 = "stablehlo.sort"(%1, %1) ({
    ^bb0(%42: tensor<i32>, %43: tensor<i32>, %44: tensor<i32>, %45: tensor<i32>):
      %46 = stablehlo.compare LT, %42, %43, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc2)
      "stablehlo.return"(%46) : (tensor<i1>) -> ()
    }) {dimension = 1 : i64, is_stable = true} : (tensor<2x5xi32>, tensor<2x5xi32>) -> (tensor<2x5xi32>, tensor<2x5xi32>) loc(#loc2)
    %47 = stablehlo.slice %41#0 [0:2, 0:3] : (tensor<2x5xi32>) -> tensor<2x3xi32> loc(#loc2)
    %48 = stablehlo.slice %41#1 [0:2, 0:3] : (tensor<2x5xi32>) -> tensor<2x3xi32> loc(#loc2)
    return %11, %18, %40, %47 : tensor<2x5xf32>, tensor<2x5xf32>, tensor<1x5xi32>, tensor<2x3xi32>
  }
}
#loc0 = loc(" [a=2 b=5] = scan")
#loc1 = loc(" [k=1 b=5],  [k=1 b=5] = sort")
#loc2 = loc(" [a=2 k=3],  [a=2 k=3] = sort")
