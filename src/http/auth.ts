/** The bearer token: compared in constant time over digests, so that neither content nor length leaks. */
import { hash, timingSafeEqual } from "node:crypto";

/** Answers whether an `Authorization` header carries `token`. A null token lets everyone in. */
export function tokenCheck(token: string | null): (authorization: string | undefined) => boolean {
  if (token === null) return () => true;
  const expected = digest(Buffer.from(token, "utf8"));
  return (authorization) => {
    const given = authorization === undefined ? null : /^Bearer +(.*)$/i.exec(authorization);
    // Node reads header bytes as latin1; the token's own bytes are UTF-8.
    return (
      given !== null && timingSafeEqual(digest(Buffer.from(given[1] ?? "", "latin1")), expected)
    );
  };
}

function digest(bytes: Buffer): Buffer {
  return hash("sha256", bytes, "buffer");
}
