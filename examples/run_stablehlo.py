#!/usr/bin/env python3
r"""Runs a training step that `weft export --stablehlo` wrote, in JAX on virtual CPU devices.

    weft export --config configs/lm-demo.toml --mesh "data:2 model:4" --stablehlo step.mlir
    python3 examples/run_stablehlo.py step.mlir --random 1 --set adam/rate=0.003 --set adam/second_scale=1 --steps 10 \
        --save values.safetensors

STEP.mlir.json, the manifest beside the module, says what its arguments and results are. Values come from --values, a
.safetensors file with unsplit tensors under the manifest's names, from --set, one number for all elements of an input,
and from --random: floats in [-1, 1) (variables: times --scale), integers from 0 to 9, and zeros for the optimizer's state;
single numbers, as the learning rate, are never drawn.
--save writes the values of the first step. `weft run` runs the same program on the same values:

    weft explain configs/lm-demo.toml --mesh "data:2 model:4" --program step.weft
    weft run step.weft --inputs values.safetensors --steps 10 --json

Every step gets the same inputs; variables keep their values. The script prints one JSON line per step with the results
that are scalars. It needs `pip install jax`; the calls below were made with JAX 0.10.
"""

import argparse
import json
import math
import os
import zlib

try:
    import numpy as np
except ImportError:
    raise SystemExit("error: this Python has no numpy, nor JAX\nfix:   pip install jax, in a virtual environment") from None


def refuse(what, fix):
    raise SystemExit(f"error: {what}\nfix:   {fix}")


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", help="the file that weft export --stablehlo wrote")
    parser.add_argument("--values", help="inputs and variables, a .safetensors file")
    parser.add_argument("--random", type=int, help="draw all other values with this seed")
    parser.add_argument("--scale", type=float, default=0.05, help="of variables that are drawn; default: 0.05")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", help="an input; may be repeated")
    parser.add_argument("--save", help="write the values of the first step to this .safetensors file")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of the program's random ops")
    return parser.parse_args()


# ---- values

SAFETENSORS = {"f32": "F32", "bf16": "BF16", "f16": "F16", "f64": "F64", "i32": "I32", "i8": "I8", "i64": "I64", "u32": "U32",
               "u8": "U8", "bool": "BOOL"}


def dtype_of(name):
    if name == "bf16":
        import ml_dtypes
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype({"f32": "f4", "f16": "f2", "f64": "f8", "i32": "i4", "i8": "i1", "i64": "i8", "u32": "u4", "u8": "u1",
                     "bool": "?"}[name])


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    names = {word: name for name, word in SAFETENSORS.items()}
    values = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values[name] = np.frombuffer(data[begin:end], dtype_of(names[entry["dtype"]])).reshape(entry["shape"])
    return values


def write_safetensors(path, values, dtypes):
    header, pieces, end = {}, [], 0
    for name, value in values.items():
        pieces.append(np.ascontiguousarray(value).tobytes())
        header[name] = {"dtype": SAFETENSORS[dtypes[name]], "shape": list(value.shape),
                        "data_offsets": [end, end + len(pieces[-1])]}
        end += len(pieces[-1])
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(pieces))


def drawn(argument, seed, scale):
    shape, dtype = [dim["size"] for dim in argument["dims"]], argument["dtype"]
    if argument.get("trainable") is False:
        return np.zeros(shape, dtype_of(dtype))
    random = np.random.default_rng([seed, zlib.crc32(argument["name"].encode())])
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype in ("i8", "i32", "i64", "u32", "u8"):
        return random.integers(0, 10, shape).astype(dtype_of(dtype))
    numbers = random.uniform(-1, 1, shape) * (scale if argument["role"] == "variable" else 1)
    return numbers.astype(dtype_of(dtype))


def first_values(manifest, given):
    """Unsplit inputs and variables by name."""
    known = read_safetensors(given.values) if given.values else {}
    wanted = [argument for argument in manifest["arguments"] if argument["role"] in ("input", "variable")]
    for word in given.set:
        name, _, number = word.partition("=")
        if name not in [argument["name"] for argument in wanted]:
            refuse(f"--set {word}: the module has no such input",
                   "choose from: " + ", ".join(a["name"] for a in wanted if a["role"] == "input"))
        try:
            known[name] = float(number)
        except ValueError:
            refuse(f"--set {word}: '{number}' is not a number", f"write --set {name}=0.5")
    values, missing = {}, []
    for argument in wanted:
        name, shape = argument["name"], [dim["size"] for dim in argument["dims"]]
        if name in known:
            values[name] = np.broadcast_to(np.asarray(known[name]), shape).astype(dtype_of(argument["dtype"]))
        elif given.random is not None and not (argument["role"] == "input" and not shape):
            values[name] = drawn(argument, given.random, given.scale)
        else:
            missing.append(name)
    if missing:
        refuse(f"there is no value of {', '.join(missing)}",
               "add --values FILE, --random SEED, or --set NAME=NUMBER; single numbers, as the learning rate, are never drawn")
    return values


# ---- shards: processors are numbered row-major over the axes of the mesh

def shard_of(place, mesh, processor):
    """Where the shard of a processor lies in the whole tensor."""
    coordinates = dict(zip(mesh, np.unravel_index(processor, tuple(mesh.values()) or (1,))))
    where = []
    for size, axes in zip(place["shard"], place["split"]):
        index = 0
        for axis in axes:
            index = index * mesh[axis] + int(coordinates[axis])
        where.append(slice(index * size, (index + 1) * size))
    return tuple(where)


def main():
    given = options()
    try:
        with open(given.module + ".json", encoding="utf-8") as file:
            manifest = json.load(file)
    except OSError as error:
        refuse(f"cannot read the manifest {given.module}.json: {error.strerror}",
               "keep it beside the module: weft export --stablehlo writes both")
    except ValueError as error:
        refuse(f"the manifest {given.module}.json is no JSON: {error}", "write it again: weft export --stablehlo")
    mesh = {axis["axis"]: axis["size"] for axis in manifest["mesh"]}
    count = math.prod(mesh.values())
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    try:
        import jax
    except ImportError:
        refuse("this Python has no JAX", "pip install jax, in a virtual environment")
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir
    jax.config.update("jax_enable_x64", True)
    devices = jax.devices()[:count]

    compile_options = xla_client.CompileOptions()
    compile_options.num_replicas, compile_options.num_partitions = 1, count
    compile_options.device_assignment = xla_client.DeviceAssignment.create(np.arange(count).reshape(1, count))
    compile_options.executable_build_options.use_spmd_partitioning = True
    try:
        with open(given.module, encoding="utf-8") as file, mlir.make_ir_context(), ir.Location.unknown():
            module = mlir.module_to_bytecode(ir.Module.parse(file.read()))
    except (OSError, ir.MLIRError) as error:
        refuse(f"cannot read the module {given.module}: {error}", "write it again: weft export --stablehlo")
    step = devices[0].client.compile_and_load(module, xla_client.DeviceList(tuple(devices)), compile_options)

    # JAX sees the shards as one array that is split along its first dim; the module never sees this array.
    line = jax.sharding.Mesh(np.array(devices), ("processor",))

    def on_devices(shards):
        scalar = shards[0].ndim == 0
        spec = jax.sharding.PartitionSpec() if scalar else jax.sharding.PartitionSpec("processor")
        shape = () if scalar else (count * shards[0].shape[0],) + shards[0].shape[1:]
        placed = [jax.device_put(shard, device) for shard, device in zip(shards, devices)]
        return jax.make_array_from_single_device_arrays(shape, jax.sharding.NamedSharding(line, spec), placed)

    values = first_values(manifest, given)
    if given.save:
        write_safetensors(given.save, values, {a["name"]: a["dtype"] for a in manifest["arguments"]})
    arguments = {}
    for argument in manifest["arguments"]:
        if argument["name"] in values:
            whole = values[argument["name"]]
            arguments[argument["name"]] = [np.ascontiguousarray(whole[shard_of(argument, mesh, p)]) for p in range(count)]
    words = np.array([given.seed & 0xFFFFFFFF, given.seed >> 32], np.uint32)
    for number in range(given.steps):
        fed = []
        for argument in manifest["arguments"]:
            if argument["role"] == "seed":
                fed.append(on_devices([words] * count))
            elif argument["role"] == "step":
                fed.append(on_devices([np.uint32(number)] * count))
            else:
                fed.append(on_devices(arguments[argument["name"]]))
        results = step.execute_sharded(fed).disassemble_into_single_device_arrays()
        told = {"step": number}
        for result, shards in zip(manifest["results"], results):
            if result["role"] == "variable":
                arguments[result["name"]] = shards
            elif not result["dims"]:
                told[result["name"]] = float(np.asarray(shards[0]))
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
