"""Decoding by llama.cpp (pip install llama-cpp-python gguf numpy): the language model of a config, with random weights.

All prompts of a batch are read in one llama_batch. Then each step adds one token to each row that is not done, the token with the
largest logit. The calls go straight to the C functions; Python only fills the batch and finds the largest logits. The script runs with and
without flash attention, and with one cache for all rows or one for each, and times the fastest.
"""
import ctypes
import itertools
import time
from pathlib import Path

import gguf
import llama_cpp as llama
import numpy as np

import decode_work

TYPES = {"f32": gguf.GGMLQuantizationType.F32, "bf16": gguf.GGMLQuantizationType.BF16,
         "f16": gguf.GGMLQuantizationType.F16, "int8": gguf.GGMLQuantizationType.Q8_0}
FILES = {"f32": gguf.LlamaFileType.ALL_F32, "bf16": gguf.LlamaFileType.MOSTLY_BF16, "f16": gguf.LlamaFileType.MOSTLY_F16,
         "int8": gguf.LlamaFileType.MOSTLY_Q8_0}
UBATCH = 512  # the tokens that llama.cpp computes together; its default


def make_model(m, weights, path):
    """Written to another file first: a file of this name is complete."""
    random = np.random.default_rng(0)
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(part, "llama")
    width, inner = m["d_model"], m["heads"] * m["d_kv"]
    writer.add_file_type(FILES[weights])
    writer.add_block_count(m["layers"])
    writer.add_context_length(4096)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(m["d_ff"])
    writer.add_head_count(m["heads"])
    writer.add_head_count_kv(m["heads"])
    writer.add_key_length(m["d_kv"])
    writer.add_value_length(m["d_kv"])
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(m["d_kv"])
    writer.add_vocab_size(m["vocab"])
    writer.add_tokenizer_model("none")

    def matrix(name, rows, columns):
        values = random.normal(0, columns ** -0.5, (rows, columns)).astype("float32")
        writer.add_tensor(name + ".weight", gguf.quants.quantize(values, TYPES[weights]), raw_dtype=TYPES[weights])

    def norm(name):
        writer.add_tensor(name + ".weight", np.ones(width, "float32"))

    matrix("token_embd", m["vocab"], width)
    for i in range(m["layers"]):
        norm(f"blk.{i}.attn_norm"), norm(f"blk.{i}.ffn_norm")
        for name in "qkv":
            matrix(f"blk.{i}.attn_{name}", inner, width)
        matrix(f"blk.{i}.attn_output", width, inner)
        matrix(f"blk.{i}.ffn_gate", m["d_ff"], width), matrix(f"blk.{i}.ffn_up", m["d_ff"], width)
        matrix(f"blk.{i}.ffn_down", width, m["d_ff"])
    norm("output_norm")
    matrix("output", m["vocab"], width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.rename(path)


class Engine:
    """A context: a cache for rows of at most `longest` tokens."""

    def __init__(self, model, o, vocab, batch, longest, most, flash, unified):
        params = llama.llama_context_default_params()
        params.n_seq_max = batch
        params.n_ctx = batch * (-(-longest // 256) * 256)  # llama.cpp rounds the cache of a row up to this
        params.n_batch, params.n_ubatch = max(most, batch), UBATCH
        params.n_threads = params.n_threads_batch = o.threads
        params.flash_attn_type = 1 if flash else 0
        params.kv_unified = unified
        params.no_perf = True
        self.context = llama.llama_init_from_model(model, params)
        if not self.context:
            raise SystemExit("llama.cpp made no context")
        self.vocab = vocab
        self.batch = llama.llama_batch_init(params.n_batch, 0, 1)

    def decode(self, entries):
        """entries: (token, position, row, whether its logits are wanted). The likeliest tokens where they are."""
        b = self.batch
        b.n_tokens = len(entries)
        for i, (token, position, row, wanted) in enumerate(entries):
            b.token[i], b.pos[i], b.n_seq_id[i], b.seq_id[i][0], b.logits[i] = token, position, 1, row, wanted
        if llama.llama_decode(self.context, b) != 0:
            raise SystemExit("llama_decode failed")
        count = sum(1 for entry in entries if entry[3])
        logits = llama.llama_get_logits(self.context)
        return np.ctypeslib.as_array(logits, (count, self.vocab)).argmax(1).tolist()

    def run(self, rows):
        """Reads and writes rows together; the seconds of reading and of writing, and the steps."""
        llama.llama_memory_clear(llama.llama_get_memory(self.context), False)
        begin = time.perf_counter()
        prompt = [(token, i, row, i == len(tokens) - 1) for row, (tokens, _) in enumerate(rows) for i, token in enumerate(tokens)]
        last = dict(enumerate(self.decode(prompt)))
        read = time.perf_counter()
        written, steps = 1, 0
        while last := {row: token for row, token in last.items() if written < rows[row][1]}:
            tokens = self.decode([(token, len(rows[row][0]) + written - 1, row, True) for row, token in last.items()])
            last = dict(zip(last, tokens))
            written, steps = written + 1, steps + 1
        return read - begin, time.perf_counter() - read, steps


def main():
    o = decode_work.arguments(__doc__, list(TYPES)).parse_args()
    m = decode_work.sizes(o)
    path = Path(o.folder) / f"llama-{m['d_model']}-{m['layers']}-{m['vocab']}-{o.weights}.gguf"
    if not path.is_file():
        make_model(m, o.weights, path)
    silent = llama.llama_log_callback(lambda level, text, data: None)
    llama.llama_log_set(silent, ctypes.c_void_p(0))
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    if not model:
        raise SystemExit(f"llama.cpp cannot read '{path}'")

    rows = [(decode_work.ids(row, read, m["vocab"]), write) for row, (read, write) in enumerate(decode_work.rows(o.work))]
    groups = [rows[begin:begin + o.batch] for begin in range(0, len(rows), o.batch)]
    longest = max(len(tokens) + write for tokens, write in rows)
    most = max(sum(len(tokens) for tokens, _ in group) for group in groups)
    variants = list(itertools.product((False, True), (False, True) if o.batch > 1 else (True,)))  # flash attention, one cache
    engines = {variant: Engine(model, o, m["vocab"], o.batch, longest, most, *variant) for variant in variants}

    def run(variant):
        return [sum(part) for part in zip(*(engines[variant].run(group) for group in groups))]

    best = decode_work.fastest(variants, run)
    seconds, (read, write, steps) = decode_work.median_run(o.repeats, lambda: run(best))
    stepped = sum(write - 1 for _, write in rows)
    prompts = sum(len(tokens) for tokens, _ in rows)
    decode_work.report("llama.cpp", llama.__version__, o, seconds, {
        "prefill_s": round(read, 5), "decode_s": round(write, 5), "steps": steps, "prompt_tokens_per_s": round(prompts / read, 2),
        **({"ms_per_step": round(write / steps * 1e3, 4), "step_tokens_per_s": round(stepped / write, 2)} if steps else {}),
        "flash_attention": best[0], "one_cache": best[1], "threads": o.threads})


main()
