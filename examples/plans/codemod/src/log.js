export const lines = [];

export const log = {
  info: (text) => lines.push(`info: ${text}`),
  warn: (text) => lines.push(`warn: ${text}`),
  warning: (text) => log.warn(text), // the old name
};
