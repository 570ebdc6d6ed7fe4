"""Decoding by CTranslate2 (pip install ctranslate2 numpy): the encoder-decoder of a config, with random weights.

Rows are sorted by length and go in batches. All rows of a batch must write the same number of tokens, which CTranslate2
takes as the least and the most. Batches are submitted at once, so that workers of one thread can share them; the script
runs both divisions of the threads (workers of one thread, one worker of all threads) and times the faster one.
"""
import shutil
from pathlib import Path

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

import decode_work

TYPES = {"f32": "float32", "int8": "int8"}
random = np.random.default_rng(0)


def matrix(*shape, scale=0.05):
    return random.normal(0, scale, shape).astype("float32")


def set_norm(norm, width):
    norm.gamma = np.ones(width, "float32")


def set_attention(attention, m, is_self):
    width, inner = m["d_model"], m["heads"] * m["d_kv"]
    set_norm(attention.layer_norm, width)
    shapes = [(3 * inner, width)] if is_self else [(inner, width), (2 * inner, width)]
    for linear, shape in zip(attention.linear, shapes + [(width, inner)], strict=True):
        linear.weight = matrix(*shape)
    if is_self:
        attention.relative_attention_bias = matrix(32, m["heads"])
        attention.relative_attention_max_distance = np.dtype("int32").type(128)


def set_feed_forward(net, m):
    set_norm(net.layer_norm, m["d_model"])
    net.linear_0.weight, net.linear_0_noact.weight = matrix(m["d_ff"], m["d_model"]), matrix(m["d_ff"], m["d_model"])
    net.linear_1.weight = matrix(m["d_model"], m["d_ff"])


def make_model(m, folder):
    """Written to another folder first: a folder of this name is complete."""
    spec = transformer_spec.TransformerSpec.from_config(
        (m["layers"], m["layers"]), m["heads"], pre_norm=True, activation=common_spec.Activation.GELU, ffn_glu=True,
        rms_norm=True, relative_attention_bias=True)
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = matrix(m["vocab"], m["d_model"])
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = False
    set_norm(spec.encoder.layer_norm, m["d_model"]), set_norm(spec.decoder.layer_norm, m["d_model"])
    spec.decoder.projection.weight = matrix(m["vocab"], m["d_model"], scale=0.2)
    for layer in spec.encoder.layer:
        set_attention(layer.self_attention, m, True), set_feed_forward(layer.ffn, m)
    for layer in spec.decoder.layer:
        set_attention(layer.self_attention, m, True), set_attention(layer.attention, m, False), set_feed_forward(layer.ffn, m)
    tokens = ["<s>", "</s>", "<unk>"] + [f"t{i}" for i in range(3, m["vocab"])]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "<s>", "</s>", "<unk>"
    spec.validate()
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    spec.save(str(part))
    part.rename(folder)


def batches(o, vocab):
    """(lines of tokens, tokens to write), the longest first: the workers then end at about the same time."""
    rows = decode_work.rows(o.work)
    order = sorted(range(len(rows)), key=lambda i: rows[i][0])
    made = []
    for begin in range(0, len(order), o.batch):
        numbers = order[begin:begin + o.batch]
        writes = {rows[i][1] for i in numbers}
        if len(writes) != 1:
            raise SystemExit(f"rows of one batch write different numbers of tokens: {sorted(writes)}")
        made.append(([[f"t{token}" for token in decode_work.ids(i, rows[i][0], vocab)] for i in numbers], writes.pop()))
    return made[::-1]


def main():
    p = decode_work.arguments(__doc__, list(TYPES))
    p.add_argument("--beams", type=int, default=1)
    o = p.parse_args()
    m = decode_work.sizes(o)
    folder = Path(o.folder) / f"ct2-{m['d_model']}-{m['layers']}-{m['vocab']}"
    if not folder.is_dir():
        make_model(m, folder)
    work = batches(o, m["vocab"])

    divisions = {(1, o.threads), (o.threads, 1)}  # workers, threads of each
    engines = {division: ctranslate2.Translator(str(folder), device="cpu", inter_threads=division[0], intra_threads=division[1],
                                                compute_type=TYPES[o.weights]) for division in sorted(divisions)}

    def run(division):
        asked = [engines[division].translate_batch(lines, beam_size=o.beams, length_penalty=0.6, max_decoding_length=n,
                                                   min_decoding_length=n, asynchronous=True) for lines, n in work]
        return sum(len(row.result().hypotheses[0]) for batch in asked for row in batch)

    best = decode_work.fastest(engines, run)
    seconds, tokens = decode_work.median_run(o.repeats, lambda: run(best))
    expected = sum(len(lines) * n for lines, n in work)
    if tokens != expected:
        raise SystemExit(f"CTranslate2 wrote {tokens} tokens, not {expected}")
    decode_work.report("ctranslate2", ctranslate2.__version__, o, seconds,
                       {"beams": o.beams, "workers": best[0], "threads": best[1]})


main()
