// Does nothing, in the process: what remains is the cost of the job itself.
export default {
  name: "noop",
  isolation: "inline",
  run: () => ({ ok: true }),
};
