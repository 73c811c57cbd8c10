/**
 * What people write without a job server: Fastify, and each request put into a job system by one call.
 * `node front.js PEER PLACE`; PEER `bare`: Fastify alone, the floor. Prints its address.
 */
import fastify from "fastify";
import { input, type OpenPeer, type Place } from "../peers/peer.js";

const [, , name = "bare", placeJson = "{}"] = process.argv;

const peer =
  name === "bare"
    ? null
    : await ((await import(`../peers/${name}.js`)) as { open: OpenPeer }).open(
        JSON.parse(placeJson) as Place,
      );
let accepted = 0;
const app = fastify({ logger: false });
app.post("/jobs", async (request, reply) => {
  accepted += 1;
  if (peer !== null) await peer.submit({ ...input(accepted), ...(request.body as object) });
  reply.code(202);
  return { id: String(accepted), ok: true };
});
app.get("/recorded", async () => ({ recorded: peer === null ? accepted : await peer.recorded() }));
process.stdout.write(`${await app.listen({ port: 0, host: "127.0.0.1" })}\n`);
process.once("SIGTERM", () => {
  void app.close().then(() => peer?.close());
});
