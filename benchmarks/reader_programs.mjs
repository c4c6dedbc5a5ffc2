// ONNX Runtime in Node, as reader_programs.py: node reader_programs.mjs FOLDER-OF-node_modules PACKAGE CASE...
// PACKAGE is onnxruntime-node, or onnxruntime-web, whose build of WebAssembly runs as in a browser.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const [modules, runtime, ...cases] = process.argv.slice(2);
const ort = createRequire(join(modules, "package.json"))(runtime);
const arrays = {
  float32: Float32Array, float64: Float64Array, int64: BigInt64Array, uint64: BigUint64Array,
  int32: Int32Array, uint32: Uint32Array, int16: Int16Array, uint16: Uint16Array,
  int8: Int8Array, uint8: Uint8Array, bool: Uint8Array, float16: Uint16Array,
};
const tell = (told) => process.stdout.write(`\n@${JSON.stringify(told)}\n`);

for (const folder of cases) {
  const name = basename(folder);
  tell({ case: name, stage: "loading" });
  try {
    const described = JSON.parse(readFileSync(join(folder, "case.json"), "utf8"));
    const session = await ort.InferenceSession.create(join(folder, described.file), { logSeverityLevel: 3 });
    const feeds = {};
    described.inputs.forEach(([dtype, shape], i) => {
      const bytes = readFileSync(join(folder, `in${i}.bin`));
      const copy = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
      feeds[session.inputNames[i]] = new ort.Tensor(dtype, new arrays[dtype](copy), shape);
    });
    const made = await session.run(feeds);
    const outputs = session.outputNames.map((output, i) => {
      const { data, type, dims } = made[output];
      writeFileSync(join(folder, `${runtime.replace("onnxruntime-", "")}-out${i}.bin`), Buffer.from(data.buffer, data.byteOffset, data.byteLength));
      return [type, dims];
    });
    tell({ case: name, outputs });
  } catch (error) {
    tell({ case: name, error: String(error).slice(0, 300) });
  }
}
