// The floor: what Fastify alone reaches when it parses the body and answers 202. Prints its port.
import fastify from "fastify";

const app = fastify({ logger: false });
app.post("/jobs", async (request, reply) => {
  reply.code(202);
  return { id: String(Object.keys(request.body).length), ok: true };
});
await app.listen({ port: 0, host: "127.0.0.1" });
process.stdout.write(`listening on http://127.0.0.1:${app.server.address().port}\n`);
process.on("SIGTERM", () => void app.close());
