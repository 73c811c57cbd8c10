import { log } from "./log.js";

export function total(prices) {
  for (const price of prices) if (price < 0) log.warning(`negative price ${price}`);
  return prices.reduce((sum, price) => sum + price, 0);
}
