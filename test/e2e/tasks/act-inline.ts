/** The same task in the process itself, where nothing can kill it. */
import { task } from "jobtable";
import act, { type Act } from "./act.js";

export default task<Act, { said: string }>({ ...act, name: "act-inline", isolation: "inline" });
