/** Sizes as people write and read them, and the bar of a transfer. */
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const
const SIZE = /^(0|[1-9][0-9]{0,15})(B|KiB|MiB|GiB|TiB)?$/
const BAR_CHARACTERS = 24

/** Returns null for a text that is not a size up to 2^53 - 1, such as `10MiB` or `1000`. */
export function parseBytes(text: string): number | null {
  const [, digits, unit = 'B'] = SIZE.exec(text) ?? []
  if (digits === undefined) return null
  const bytes = Number(digits) * 1024 ** UNITS.indexOf(unit as (typeof UNITS)[number])
  return Number.isSafeInteger(bytes) ? bytes : null
}

/** Formats bytes with one decimal of the largest fitting unit. */
export function formatBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, bytes === 0 ? 0 : Math.floor(Math.log2(bytes) / 10))
  return power === 0 ? `${bytes} B` : `${(bytes / 1024 ** power).toFixed(1)} ${UNITS[power]}`
}

/** Returns a text of constant length for `done` of `total` bytes. */
export function progressBar(done: number, total: number): string {
  const share = total === 0 ? 1 : done / total
  const filled = Math.round(share * BAR_CHARACTERS)
  const bar = '#'.repeat(filled).padEnd(BAR_CHARACTERS, '.')
  const percent = `${Math.floor(share * 100)}%`.padStart(4)
  return `[${bar}] ${percent}  ${`${formatBytes(done)} of ${formatBytes(total)}`.padEnd(24)}`
}
