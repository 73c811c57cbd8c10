import { log } from "./log.js";

export function take(stock, item, count) {
  const left = (stock.get(item) ?? 0) - count;
  if (left < 0) log.warning(`${item} is out of stock`);
  else if (left < 3) log.warning(`${item} runs low`);
  stock.set(item, Math.max(0, left));
  return left >= 0;
}
