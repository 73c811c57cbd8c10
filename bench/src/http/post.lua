-- One POST body for wrk; prints what wrk.ts reads: requests, requests/s, p99 ms, refused, broken.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"type":"send_email","email":"user12345@example.com","template":"welcome","subject":"Hello and welcome aboard","vars":{"name":"Ada Lovelace","plan":"pro","locale":"en-GB"},"trace":"0123456789abcdef01234567890ab"}'
done = function(summary, latency, requests)
  io.write(string.format("RES %d %f %f %d %d\n", summary.requests,
    summary.requests / (summary.duration / 1e6), latency:percentile(99) / 1e3,
    summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
