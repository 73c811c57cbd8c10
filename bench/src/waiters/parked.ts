/** The floor of waiting: Fastify that parks replies, and answers all of them when it is told to. Prints its address. */
import fastify, { type FastifyReply } from "fastify";

const parked: FastifyReply[] = [];
const app = fastify({ logger: false });
app.get("/wait", (_request, reply) => {
  parked.push(reply);
});
app.get("/parked", async () => ({ parked: parked.length }));
app.post("/go", async () => {
  const at = performance.timeOrigin + performance.now();
  setImmediate(() => {
    for (const reply of parked.splice(0)) void reply.send({ state: "done" });
  });
  return { at };
});
process.stdout.write(`${await app.listen({ port: 0, host: "127.0.0.1" })}\n`);
process.once("SIGTERM", () => void app.close());
