/** Runs in the worker's process, on its event loop. */
import { task } from "jobtable";
import { pause } from "../pause.js";
import { perform, type Part, type Performed } from "./performance.js";

export default task<Part, Performed>({
  isolation: "inline",
  run: (part, context) => perform(part, context, pause),
});
