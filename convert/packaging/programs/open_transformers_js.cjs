// Generates tokens in transformers.js, or runs a model once; needs nothing of tmconvert.
const fs = require("fs");
const path = require("path");
const { createRequire } = require("module");

const ARRAYS = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, bool: Uint8Array };
// the class of an encoder-decoder, by the input of its encoder
const ENCODERS = {
  input_ids: "AutoModelForSeq2SeqLM",
  input_features: "AutoModelForSpeechSeq2Seq",
  input_values: "AutoModelForSpeechSeq2Seq",
  pixel_values: "AutoModelForVision2Seq",
};
// without what a configuration adds to logits
const NEUTRAL = {
  do_sample: false,
  repetition_penalty: 1.0,
  forced_bos_token_id: null,
  forced_eos_token_id: null,
  suppress_tokens: null,
  begin_suppress_tokens: null,
};

async function answer(question) {
  let library;
  const ask = createRequire(path.join(question.modules, "package.json"));
  try {
    library = ask("@huggingface/transformers");
  } catch (error) {
    return { missing: String(error.message).split("\n")[0] };
  }
  const { AutoModel, AutoTokenizer, PreTrainedModel, Tensor, env } = library;
  env.allowRemoteModels = false;
  env.localModelPath = path.dirname(question.folder);
  const name = path.basename(question.folder);
  const options = { dtype: question.dtype, device: "cpu", local_files_only: true };
  const found = { version: env.version };
  const tensors = (inputs) => {
    const feeds = {};
    for (const [key, { dtype, shape, data }] of Object.entries(inputs)) {
      const bytes = Uint8Array.from(Buffer.from(data, "base64"));
      feeds[key] = new Tensor(dtype, new ARRAYS[dtype](bytes.buffer), shape);
    }
    return feeds;
  };
  if (question.task === "once") {
    const model = await AutoModel.from_pretrained(name, options);
    const outputs = {};
    for (const [key, tensor] of Object.entries(await model(tensors(question.parts[""].inputs)))) {
      const values = Float32Array.from(tensor.data, Number);
      outputs[key] = { shape: tensor.dims, data: Buffer.from(values.buffer).toString("base64") };
    }
    found.outputs = { "": outputs };
  } else {
    const kind = question.task === "encoder-decoder" ? Object.keys(ENCODERS).find((key) => key in question.inputs[0]) : "";
    const loader = kind ? ENCODERS[kind] : question.task === "decoder" ? "AutoModelForCausalLM" : "AutoModelForImageTextToText";
    const model = await library[loader].from_pretrained(name, options);
    model.generation_config = null; // its settings may change logits
    found.tokens = [];
    for (const [number, prompt] of question.prompts.entries()) {
      const shape = [1, prompt.length];
      const tokens = new Tensor("int64", BigInt64Array.from(prompt.map(BigInt)), shape);
      const inputs = kind
        ? { ...tensors(question.inputs[number]), decoder_input_ids: tokens }
        : {
            ...tensors(question.inputs[number]),
            input_ids: tokens,
            attention_mask: new Tensor("int64", new BigInt64Array(prompt.length).fill(1n), shape),
          };
      const sequence = await PreTrainedModel.prototype.generate.call(model, {
        ...inputs,
        ...NEUTRAL,
        max_new_tokens: question.steps,
        eos_token_id: question.ends.length ? question.ends : null,
        pad_token_id: question.padding,
      });
      found.tokens.push(Array.from(sequence.data, Number).slice(prompt.length));
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
