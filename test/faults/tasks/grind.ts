/** Runs in a thread, and lets nothing else happen there meanwhile. */
import { task } from "jobtable";
import { perform, type Part, type Performed } from "./performance.js";

const nobody = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

export default task<Part, Performed>({
  run: (part, context) => perform(part, context, (ms) => Atomics.wait(nobody, 0, 0, ms)),
});
