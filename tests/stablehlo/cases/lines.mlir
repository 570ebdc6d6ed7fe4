module @weft attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%0: tensor<2x5xf32> loc("x [a=2 b=5]"),
      %1: tensor<2x5xi32> loc("i [a=2 b=5]"),
      %2: tensor<2xui32> loc("seed [word=2]"),
      %3: tensor<ui32> loc("step []"))
      -> (tensor<2x5xf32>, tensor<2x5xf32>, tensor<1x5xi32>, tensor<2x3xi32>) {
    %4 = stablehlo.constant dense<0.0> : tensor<f32> loc(#loc0)
    %5 = stablehlo.slice %0 [0:2, 0:4] : (tensor<2x5xf32>) -> tensor<2x4xf32> loc(#loc0)
    %6 = stablehlo.pad %5, %4, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %7 = stablehlo.slice %6 [0:2, 0:4] : (tensor<2x5xf32>) -> tensor<2x4xf32> loc(#loc0)
    %8 = stablehlo.pad %7, %4, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %9 = stablehlo.add %8, %6 : tensor<2x5xf32> loc(#loc0)
    %10 = stablehlo.slice %9 [0:2, 0:3] : (tensor<2x5xf32>) -> tensor<2x3xf32> loc(#loc0)
    %11 = stablehlo.pad %10, %4, low = [0, 2], high = [0, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %12 = stablehlo.add %11, %9 : tensor<2x5xf32> loc(#loc0)
    %13 = stablehlo.slice %12 [0:2, 0:1] : (tensor<2x5xf32>) -> tensor<2x1xf32> loc(#loc0)
    %14 = stablehlo.pad %13, %4, low = [0, 4], high = [0, 0], interior = [0, 0] : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %15 = stablehlo.add %14, %12 : tensor<2x5xf32> loc(#loc0)
    %16 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc0)
    %17 = stablehlo.slice %0 [0:2, 1:5] : (tensor<2x5xf32>) -> tensor<2x4xf32> loc(#loc0)
    %18 = stablehlo.pad %17, %16, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %19 = stablehlo.maximum %18, %0 : tensor<2x5xf32> loc(#loc0)
    %20 = stablehlo.slice %19 [0:2, 2:5] : (tensor<2x5xf32>) -> tensor<2x3xf32> loc(#loc0)
    %21 = stablehlo.pad %20, %16, low = [0, 0], high = [0, 2], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %22 = stablehlo.maximum %21, %19 : tensor<2x5xf32> loc(#loc0)
    %23 = stablehlo.slice %22 [0:2, 4:5] : (tensor<2x5xf32>) -> tensor<2x1xf32> loc(#loc0)
    %24 = stablehlo.pad %23, %16, low = [0, 0], high = [0, 4], interior = [0, 0] : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x5xf32> loc(#loc0)
    %25 = stablehlo.maximum %24, %22 : tensor<2x5xf32> loc(#loc0)
    %26 = stablehlo.iota dim = 0 : tensor<2xi32> loc(#loc1)
    %27 = "stablehlo.replica_id"() : () -> tensor<ui32> loc(#loc1)
    %28 = stablehlo.convert %27 : (tensor<ui32>) -> tensor<i64> loc(#loc1)
    %29 = stablehlo.constant dense<2> : tensor<i64> loc(#loc1)
    %30 = stablehlo.multiply %28, %29 : tensor<i64> loc(#loc1)
    %31 = stablehlo.convert %30 : (tensor<i64>) -> tensor<i32> loc(#loc1)
    %32 = stablehlo.broadcast_in_dim %31, dims = [] : (tensor<i32>) -> tensor<2xi32> loc(#loc1)
    %33 = stablehlo.add %26, %32 : tensor<2xi32> loc(#loc1)
    %34 = stablehlo.broadcast_in_dim %33, dims = [0] : (tensor<2xi32>) -> tensor<2x5xi32> loc(#loc1)
    %35:2 = "stablehlo.sort"(%0, %34) ({
    ^bb0(%36: tensor<f32>, %37: tensor<f32>, %38: tensor<i32>, %39: tensor<i32>):
      %40 = stablehlo.compare GT, %36, %37, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc1)
      %41 = stablehlo.compare NE, %36, %36, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc1)
      %42 = stablehlo.compare NE, %37, %37, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc1)
      %43 = stablehlo.not %42 : tensor<i1> loc(#loc1)
      %44 = stablehlo.and %41, %43 : tensor<i1> loc(#loc1)
      %45 = stablehlo.or %40, %44 : tensor<i1> loc(#loc1)
      "stablehlo.return"(%45) : (tensor<i1>) -> ()
    }) {dimension = 0 : i64, is_stable = true} : (tensor<2x5xf32>, tensor<2x5xi32>) -> (tensor<2x5xf32>, tensor<2x5xi32>) loc(#loc1)
    %46 = stablehlo.slice %35#0 [0:1, 0:5] : (tensor<2x5xf32>) -> tensor<1x5xf32> loc(#loc1)
    %47 = stablehlo.slice %35#1 [0:1, 0:5] : (tensor<2x5xi32>) -> tensor<1x5xi32> loc(#loc1)
    %48:2 = "stablehlo.sort"(%1, %1) ({
    ^bb0(%49: tensor<i32>, %50: tensor<i32>, %51: tensor<i32>, %52: tensor<i32>):
      %53 = stablehlo.compare LT, %49, %50, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc2)
      "stablehlo.return"(%53) : (tensor<i1>) -> ()
    }) {dimension = 1 : i64, is_stable = true} : (tensor<2x5xi32>, tensor<2x5xi32>) -> (tensor<2x5xi32>, tensor<2x5xi32>) loc(#loc2)
    %54 = stablehlo.slice %48#0 [0:2, 0:3] : (tensor<2x5xi32>) -> tensor<2x3xi32> loc(#loc2)
    %55 = stablehlo.slice %48#1 [0:2, 0:3] : (tensor<2x5xi32>) -> tensor<2x3xi32> loc(#loc2)
    return %15, %25, %47, %54 : tensor<2x5xf32>, tensor<2x5xf32>, tensor<1x5xi32>, tensor<2x3xi32>
  }
}
#loc0 = loc(" [a=2 b=5] = scan")
#loc1 = loc(" [k=1 b=5],  [k=1 b=5] = sort")
#loc2 = loc(" [a=2 k=3],  [a=2 k=3] = sort")
