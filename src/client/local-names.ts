/** Names of local files that keys of objects become. A key may be any text. */

const BYTES_MAX = 255
/** Controls, separators, and what other systems give a meaning. */
const FORBIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}/\\:*?"<>|]/u
/** Devices of Windows, with any extension. */
const DEVICE = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/i

/**
 * Returns the last segment of the key if it is a plain name on every system; null otherwise: the
 * user then has to choose one. A hidden name, or one that looks like an option, is not plain.
 */
export function localName(key: string): string | null {
  const name = key.slice(key.lastIndexOf('/') + 1)
  const isPlain =
    name !== '' &&
    !/^[.-]|[. ]$/.test(name) &&
    !FORBIDDEN.test(name) &&
    !DEVICE.test(name) &&
    new TextEncoder().encode(name).length <= BYTES_MAX
  return isPlain ? name : null
}
