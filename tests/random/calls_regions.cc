// Loops and regions: recompute, reversible, custom_gradient, microbatch. Results that belong together are joined into one
// tensor, so that none of them is dead.
#include "calls_macros.h"

namespace weft::random_graphs {

namespace {

const Calls kLoopCalls = {
    WEFT_CALL("looped", loop(g, a.integer(2), Tensors{a.x(0)},
                             [&](const Tensor&, const Tensors& c) {
                               return LoopStep{{tanh(c[0]) * 0.5 + a.x(1)}, {}, {}, {}};
                             })
                            .carried[0]),
    WEFT_CALL("loop_sum",
              loop(g, a.integer(2), Tensors{},
                   [&](const Tensor& i, const Tensors&) {
                     return LoopStep{{}, {reduce_sum(sin(a.x(0) + cast(i, a.x(0).dtype())), a.shape(1))}, {}, {}};
                   })
                  .sums[0]),
    WEFT_CALL("loop_kept", [](const Tensor& kept) { return mean(kept, {kept.shape()[0]}); }(
                               loop(g, a.integer(1), Tensors{a.x(0)},
                                    [&](const Tensor&, const Tensors& c) {
                                      return LoopStep{{sin(c[0])}, {}, {c[0] * a.x(0)}, {}};
                                    })
                                   .kept[0])),
    WEFT_CALL("recomputed", recompute(g, [&] { return Tensors{sin(a.x(0)) * tanh(a.x(1))}; })[0]),
    WEFT_CALL("reversed", reversible(a.x(0), tanh(a.x(0)),
                                     {[&](const Tensor& h) { return sin(h); },
                                      [&](const Tensor& h) { return tanh(h) * a.x(0); }})[1]),
    WEFT_CALL("microbatch_whole", microbatch({a.x(0)}, a.dim(1), a.integer(2),
                                             [&](const Tensors& part) { return Tensors{sin(part[0])}; })[0]),
    WEFT_CALL("microbatched", microbatch_loss({a.x(0)}, a.dim(1), a.integer(2),
                                              [&](const Tensors& part) { return mean(square(part[0])); })),
};

// Carried values that change places. Their bodies take whole numbers as well as floats.
const Calls kCarriedCalls = {
    WEFT_CALL("loop_swap",
              [](const Tensors& c) { return c[0] * 2.0 + c[1]; }(loop(g, a.integer(2), Tensors{a.x(0), a.x(1)},
                                                                      [](const Tensor&, const Tensors& c) {
                                                                        return LoopStep{{c[1], c[0]}, {}, {}, {}};
                                                                      })
                                                                     .carried)),
    WEFT_CALL("loop_rotate", [](const Tensors& c) { return c[0] * 3.0 + c[1] * 2.0 + c[2]; }(
                                 loop(g, a.integer(3), Tensors{a.x(0), a.x(1), a.x(2)},
                                      [](const Tensor&, const Tensors& c) {
                                        return LoopStep{{c[1], c[2], c[0]}, {}, {}, {}};
                                      })
                                     .carried)),
    // One value goes to two slots; another is computed from what has left its slot.
    WEFT_CALL("loop_doubled", [](const Tensors& c) { return c[0] * 3.0 + c[1] * 2.0 + c[2]; }(
                                  loop(g, a.integer(2), Tensors{a.x(0), a.x(1), a.x(0)},
                                       [](const Tensor&, const Tensors& c) {
                                         return LoopStep{{c[1], c[1], c[0] + c[2]}, {}, {}, {}};
                                       })
                                      .carried)),
    WEFT_CALL("loop_chain", [](const Tensors& c) { return c[0] * 2.0 + c[1] + c[2]; }(
                                loop(g, a.integer(2), Tensors{a.x(0), a.x(1), a.x(1)},
                                     [](const Tensor&, const Tensors& c) {
                                       return LoopStep{{c[0] - c[1], c[0], c[1]}, {}, {}, {}};
                                     })
                                    .carried)),
    // An outside tensor becomes a carried value, is summed and kept.
    WEFT_CALL("loop_outside",
              [](const LoopResult& r) {
                return r.carried[0] * 2.0 + r.carried[1] + r.sums[0] + reduce_sum(r.kept[0], {r.kept[0].shape()[0]});
              }(loop(g, a.integer(2), Tensors{a.x(0), a.x(0)},
                     [&](const Tensor&, const Tensors& c) {
                       return LoopStep{{a.x(1), c[0]}, {a.x(1)}, {c[1]}, {}};
                     }))),
    WEFT_CALL("loop_nested", [](const Tensors& c) { return c[0] * 2.0 + c[1]; }(
                                 loop(g, a.integer(2), Tensors{a.x(0), a.x(1)},
                                      [&](const Tensor&, const Tensors& o) {
                                        const Tensors in =
                                            loop(g, a.integer(3), {o[1], o[0]}, [&](const Tensor&, const Tensors& c) {
                                              return LoopStep{{c[1] - o[0], c[0]}, {}, {}, {}};
                                            }).carried;
                                        return LoopStep{{in[1], in[0]}, {}, {}, {}};
                                      })
                                     .carried)),
    // A loop that may stop early has no derivative.
    WEFT_CALL("loop_stopped", [](const Tensors& c) { return stop_gradient(c[0] * 2.0 + c[1]); }(
                                  loop(g, a.integer(2), Tensors{a.x(0), a.x(1)},
                                       [&](const Tensor& i, const Tensors& c) {
                                         return LoopStep{{c[1], c[0]}, {}, {}, greater_equal(i, a.number(3))};
                                       })
                                      .carried)),
};

// The same with functions between, of floats: what their derivatives and second derivatives go through.
const Calls kSmoothLoopCalls = {
    WEFT_CALL(
        "loop_waves",
        [](const LoopResult& r) {
          return r.carried[0] * 2.0 + r.carried[1] + r.sums[0] + mean(r.kept[0], {r.kept[0].shape()[0]});
        }(loop(g, a.integer(2), Tensors{a.x(0), a.x(1)},
               [&](const Tensor&, const Tensors& c) {
                 return LoopStep{{c[1], sin(c[0]) * 0.5 + c[1] * 0.25}, {c[0] * c[1] * 0.25}, {c[1] * a.x(1)}, {}};
               }))),
    WEFT_CALL("loop_squares", loop(g, a.integer(1), Tensors{a.x(0)},
                                   [](const Tensor&, const Tensors& c) {
                                     return LoopStep{{c[0] * c[0] * 0.5 + 0.25}, {}, {}, {}};
                                   })
                                  .carried[0]),
    WEFT_CALL("loop_of_loops",
              loop(g, a.integer(2), Tensors{a.x(0)},
                   [&](const Tensor& i, const Tensors& o) {
                     const LoopResult in = loop(g, 2, {o[0], a.x(1)}, [&](const Tensor& j, const Tensors& c) {
                       const Tensor scale = cast(i * 2.0 + j, c[0].dtype()) * 0.125 + 0.5;
                       return LoopStep{{c[1] * scale, tanh(c[0]) + o[0] * 0.25}, {sin(c[0]) * 0.25}, {}, {}};
                     });
                     return LoopStep{{in.carried[1] + in.sums[0]}, {}, {}, {}};
                   })
                  .carried[0]),
    WEFT_CALL("loop_noise", loop(g, a.integer(1), Tensors{a.x(0)},
                                 [&](const Tensor&, const Tensors& c) {
                                   const Tensor noise = random_uniform(g, c[0].shape(), 0.5, 1, c[0].dtype());
                                   return LoopStep{{c[0] * noise}, {}, {}, {}};
                                 })
                                .carried[0]),
};

// Regions that return outside tensors, or what they were given.
const Calls kRegionCalls = {
    WEFT_CALL("recompute_outside",
              [](const Tensors& r) { return r[0] * r[1]; }(recompute(g,
                                                                     [&] {
                                                                       return Tensors{sin(a.x(0)), a.x(1)};
                                                                     }))),
    WEFT_CALL("recompute_only_outside", recompute(g, [&] { return Tensors{a.x(0)}; })[0]),
    WEFT_CALL("recompute_twice",
              [](const Tensors& r) {
                return r[0] * r[1] + r[2];
              }(recompute(g,
                          [&] {
                            const Tensors inner = recompute(g, [&] { return Tensors{tanh(a.x(0)), a.x(1)}; });
                            return Tensors{inner[0] * inner[1], inner[1], a.x(0)};
                          }))),
    WEFT_CALL(
        "recompute_in_loop",
        [](const Tensors& c) {
          return c[0] * 2.0 + c[1];
        }(loop(g, a.integer(2), Tensors{a.x(0), a.x(1)},
               [&](const Tensor&, const Tensors& c) {
                 return LoopStep{recompute(g, [&] { return Tensors{c[1], sin(c[0]) * 0.5 + a.x(1)}; }), {}, {}, {}};
               })
              .carried)),
    WEFT_CALL("loop_in_recompute", [](const Tensors& r) { return r[0] + r[1] * 2.0; }(
                                       recompute(g,
                                                 [&] {
                                                   return loop(g, a.integer(2), {a.x(0), a.x(1)},
                                                               [&](const Tensor&, const Tensors& c) {
                                                                 return LoopStep{{c[1], tanh(c[0]) * 0.5}, {}, {}, {}};
                                                               })
                                                       .carried;
                                                 }))),
    WEFT_CALL("reversible_outside",
              [](const Tensors& r) {
                return r[0] * 2.0 + r[1];
              }(reversible(a.x(0), tanh(a.x(0)),
                           {[&](const Tensor&) { return a.x(1); }, [&](const Tensor& h) { return sin(h) * 0.5; },
                            [&](const Tensor&) { return a.x(1); }}))),
    WEFT_CALL("reversible_input",
              [](const Tensors& r) { return r[0] * 2.0 + r[1]; }(reversible(
                  a.x(0), a.x(1), {[](const Tensor& h) { return h; }, [](const Tensor& h) { return tanh(h) * 0.5; }}))),
    WEFT_CALL("custom_true", [](const Tensors& r) { return r[0] * 2.0 + r[1]; }(custom_gradient(
                                 {a.x(0), a.x(1)},
                                 [](const Tensors& t) {
                                   return Tensors{t[1], t[0] * t[1]};
                                 },
                                 [](const Tensors& in, const Tensors&, const Tensors& dy) {
                                   return Tensors{dy[1] * in[1], dy[0] + dy[1] * in[0]};
                                 }))),
    WEFT_CALL("microbatch_outside", [&](const Tensors& r) { return r[0] * 0.5 + broadcast(r[1], r[0].shape()); }(
                                        microbatch({a.x(0)}, a.dim(2), a.integer(3),
                                                   [&](const Tensors& part) {
                                                     return Tensors{sin(part[0]), mean(a.x(1))};
                                                   }))),
    WEFT_CALL("microbatch_input", microbatch({a.x(0), a.x(0)}, a.dim(1), a.integer(2),
                                             [&](const Tensors& part) {
                                               return Tensors{part[0], part[1] * 0.5};
                                             })[0]),
    WEFT_CALL("microbatch_loss_outside",
              microbatch_loss({a.x(0)}, a.dim(2), a.integer(3),
                              [&](const Tensors& part) { return mean(square(part[0])) * mean(a.x(1)); })),
};

}  // namespace

const Calls& region_calls() {
  static const Calls calls = [] {
    Calls all;
    for (const Calls* family : {&kLoopCalls, &kCarriedCalls, &kSmoothLoopCalls, &kRegionCalls})
      all.insert(family->begin(), family->end());
    return all;
  }();
  return calls;
}

}  // namespace weft::random_graphs
