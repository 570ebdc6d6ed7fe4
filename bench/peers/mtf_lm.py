#!/usr/bin/env python3
"""The step of `weft bench lm` in Mesh-TensorFlow on CPU: PlacementMeshImpl. Prints one JSON line.

  python mtf_lm.py --config small --mesh all:2 --layout batch:all

Variables are resource variables: with TF1's reference variables, the default of mesh-tensorflow, the losses of two runs
differ at 1e-4.
"""
import time

BEGIN = time.time()  # set-up counts the imports

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import lm_model
import mesh_tensorflow as mtf
import tensorflow.compat.v1 as tf


class Model:
    """The graph, up to the loss."""

    def __init__(self, c):
        self.c = c
        self.dims = {name: mtf.Dimension(name, c[name])
                     for name in ("batch", "length", "d_model", "heads", "d_kv", "d_ff", "vocab")}
        self.dims["memory"] = mtf.Dimension("memory_length", c["length"])
        self.graph = mtf.Graph()
        self.mesh = mtf.Mesh(self.graph, "mesh")
        self.tokens, self.targets = (tf.placeholder(tf.int32, [c["batch"], c["length"]]) for _ in range(2))
        self.weights = {name: mtf.get_variable(self.mesh, name.replace(".", "_"), self.shape(*dims),
                                               initializer=tf.zeros_initializer())
                        for name, dims, _ in lm_model.weight_list(c)}
        self.masters = {name: w.operation.get_master() for name, w in self.weights.items()}
        self.loss = self.loss_of(*(mtf.import_tf_tensor(self.mesh, x, self.shape("batch", "length"))
                                   for x in (self.tokens, self.targets)))

    def shape(self, *names):
        return mtf.Shape([self.dims[name] for name in names])

    def norm(self, name, x):
        kept = x.shape - self.dims["d_model"]
        mean = mtf.reduce_mean(x, output_shape=kept)
        variance = mtf.reduce_mean(mtf.square(x - mean), output_shape=kept)
        scaled = (x - mean) * mtf.rsqrt(variance + lm_model.NORM_EPSILON)
        return scaled * self.weights[name + ".scale"] + self.weights[name + ".bias"]

    def attention(self, layer, h, hidden):
        w, memory = self.weights, mtf.rename_dimension(h, "length", "memory_length")
        q = mtf.einsum([h, w[layer + "wq"]], self.shape("batch", "heads", "length", "d_kv"))
        k, v = (mtf.einsum([memory, w[layer + name]], self.shape("batch", "heads", "memory", "d_kv"))
                for name in ("wk", "wv"))
        scores = mtf.einsum([q, k], self.shape("batch", "heads", "length", "memory"))
        seen = mtf.softmax(scores * self.c["d_kv"] ** -0.5 + hidden, self.dims["memory"])
        return mtf.einsum([mtf.einsum([seen, v], q.shape), w[layer + "wo"]], h.shape)

    def loss_of(self, tokens, targets):
        w, places = self.weights, [mtf.range(self.mesh, self.dims[name], tf.int32) for name in ("length", "memory")]
        hidden = mtf.cast(mtf.less(*places, output_shape=self.shape("length", "memory")), tf.float32) * -1e9
        x = mtf.gather(w["embedding"], tokens, self.dims["vocab"]) + w["positions"]
        for i in range(self.c["layers"]):
            layer = f"layer{i}."
            x += self.attention(layer, self.norm(layer + "norm1", x), hidden)
            h = mtf.einsum([self.norm(layer + "norm2", x), w[layer + "wi"]], self.shape("batch", "length", "d_ff"))
            x += mtf.einsum([mtf.relu(h), w[layer + "wf"]], x.shape)
        logits = mtf.einsum([self.norm("norm", x), w["logits"]], self.shape("batch", "length", "vocab"))
        return mtf.reduce_mean(mtf.layers.softmax_cross_entropy_with_logits(logits, targets, self.dims["vocab"]))


def main():
    p = lm_model.parser(__doc__)
    p.add_argument("--threads", type=int, default=0, help="of an op; 0: all cores")
    o = p.parse_args()
    c = lm_model.CONFIGS[o.config]
    tf.disable_v2_behavior()
    tf.enable_resource_variables()
    tf.logging.set_verbosity(tf.logging.ERROR)
    model = Model(c)
    gradients = mtf.gradients([model.loss], [v.outputs[0] for v in model.graph.trainable_variables])
    rate, epsilon = (tf.placeholder(tf.float32, []) for _ in range(2))
    # Its Adam has no bias correction: the corrected rate and epsilon are fed.
    optimizer = mtf.optimize.AdamWeightDecayOptimizer(
        learning_rate=mtf.import_tf_tensor(model.mesh, rate, mtf.Shape([])), beta_1=lm_model.BETA1,
        beta_2=lm_model.BETA2, epsilon=mtf.import_tf_tensor(model.mesh, epsilon, mtf.Shape([])))
    updates = optimizer.apply_grads(gradients, model.graph.trainable_variables)

    mesh = mtf.convert_to_shape(o.mesh)
    devices = [""] if mesh.size == 1 else [f"cpu:{i}" for i in range(mesh.size)]
    placed = mtf.placement_mesh_impl.PlacementMeshImpl(mesh, mtf.convert_to_layout_rules(o.layout), devices)
    lowering = mtf.Lowering(model.graph, {model.mesh: placed})
    fetches = [lowering.export_to_tf_tensor(model.loss),
               tf.group([lowering.lowered_operation(update) for update in updates])]
    session = tf.Session(config=tf.ConfigProto(device_count={"CPU": mesh.size}, allow_soft_placement=True,
                                               intra_op_parallelism_threads=o.threads))
    session.run(tf.global_variables_initializer())
    for name, array in lm_model.first_weights(c).items():
        model.masters[name].load(array, session)
    session.run(lowering.copy_masters_to_slices())

    tokens, targets = lm_model.token_batch(c)
    losses, seconds, setup_s = [], [], 0
    for number in range(1, o.warmup + o.steps + 1):
        scalars = lm_model.adam_scalars(c, number)
        begin = time.time()
        loss, _ = session.run(fetches, {model.tokens: tokens, model.targets: targets, rate: scalars[0],
                                        epsilon: scalars[1]})
        end = time.time()
        losses.append(float(loss))
        setup_s = end - BEGIN if number == 1 else setup_s
        if number > o.warmup:
            seconds.append(end - begin)
    lm_model.report("mesh-tensorflow", o, losses, seconds, setup_s, version=tf.__version__)


if __name__ == "__main__":
    main()
