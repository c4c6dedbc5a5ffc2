// Decodes prompts in transformers.js, or runs a model once; needs nothing of tmconvert.
const fs = require("fs");
const path = require("path");
const { createRequire } = require("module");

const ARRAYS = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, bool: Uint8Array };

async function answer(question) {
  let library;
  const ask = createRequire(path.join(question.modules, "package.json"));
  try {
    library = ask("@huggingface/transformers");
  } catch (error) {
    return { missing: String(error.message).split("\n")[0] };
  }
  const { AutoModel, AutoModelForCausalLM, AutoTokenizer, Tensor, env } = library;
  env.allowRemoteModels = false;
  env.localModelPath = path.dirname(question.folder);
  const name = path.basename(question.folder);
  const options = { dtype: question.dtype, device: "cpu", local_files_only: true };
  const found = { version: env.version };
  if (question.task === "generation") {
    const model = await AutoModelForCausalLM.from_pretrained(name, options);
    found.tokens = [];
    for (const prompt of question.prompts) {
      const shape = [1, prompt.length];
      const sequence = await model.generate({
        input_ids: new Tensor("int64", BigInt64Array.from(prompt.map(BigInt)), shape),
        attention_mask: new Tensor("int64", new BigInt64Array(prompt.length).fill(1n), shape),
        max_new_tokens: question.steps,
        do_sample: false,
        repetition_penalty: 1.0,
      });
      found.tokens.push(Array.from(sequence.data, Number).slice(prompt.length));
    }
  } else {
    const model = await AutoModel.from_pretrained(name, options);
    const feeds = {};
    for (const [key, { dtype, shape, data }] of Object.entries(question.inputs)) {
      const bytes = Uint8Array.from(Buffer.from(data, "base64"));
      feeds[key] = new Tensor(dtype, new ARRAYS[dtype](bytes.buffer), shape);
    }
    found.outputs = {};
    for (const [key, tensor] of Object.entries(await model(feeds))) {
      const values = Float32Array.from(tensor.data, Number);
      found.outputs[key] = { shape: tensor.dims, data: Buffer.from(values.buffer).toString("base64") };
    }
  }
  if (question.text) {
    try {
      const tokenizer = await AutoTokenizer.from_pretrained(name, { local_files_only: true });
      found.text_tokens = tokenizer.encode(question.text);
    } catch (error) {
      found.text_error = String(error.message);
    }
  }
  return found;
}

const folder = process.argv[2];
answer(JSON.parse(fs.readFileSync(path.join(folder, "question.json"), "utf8")))
  .catch((error) => ({ error: String(error && error.stack ? error.message : error) }))
  .then((found) => fs.writeFileSync(path.join(folder, "answer.json"), JSON.stringify(found)));
