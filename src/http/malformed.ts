/**
 * Answers to what never becomes a request: bytes that are not HTTP, headers that are too large or
 * too slow. Written to the socket by hand, in the envelope's shape, and the connection is closed.
 */
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Metrics } from "./metrics.js";
import { FAULTS, JSON_TYPE, problemJson, type Fault } from "./wire.js";

const FAULT_OF: Readonly<Record<string, Fault>> = {
  HPE_HEADER_OVERFLOW: "headers_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
};

export function malformedHandler(
  newRequestId: () => string,
  metrics: Metrics,
): (error: Error & { code?: string }, socket: Duplex) => void {
  const meter = metrics.route("other", "malformed");
  return (error, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    const fault = FAULT_OF[error.code ?? ""] ?? "bad_request";
    const { http: status } = FAULTS[fault];
    const requestId = newRequestId();
    const body = problemJson({ fault }, "envelope", requestId);
    meter.ended(status, 0);
    const head = [
      `HTTP/1.1 ${String(status)} ${STATUS_CODES[status] ?? ""}`,
      `Content-Type: ${JSON_TYPE}`,
      `Content-Length: ${String(Buffer.byteLength(body))}`,
      "Cache-Control: no-store",
      `X-Request-ID: ${requestId}`,
      "Connection: close",
    ];
    socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => {
      socket.destroy();
    });
  };
}
