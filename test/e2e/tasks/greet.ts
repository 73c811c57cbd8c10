/** A task that is particular about its input. */
import { task } from "jobtable";
import { z } from "zod";

export default task({
  input: z.object({ name: z.string().min(1) }),
  run: ({ name }) => `Hello, ${name}`,
});
