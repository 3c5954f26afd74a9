/** Values of responses as text for people. */

/** Formats microseconds since the Unix epoch in the time zone of the browser. */
export function timeText(micros: string | null, absent = 'never'): string {
  if (micros === null) return absent
  const date = new Date(Number(BigInt(micros) / 1000n))
  const two = (number: number): string => String(number).padStart(2, '0')
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** Parses a time of a form in the time zone of the browser; null for any other text. */
export function microsOfLocal(text: string): string | null {
  const millis = Date.parse(text)
  return Number.isNaN(millis) || millis < 0 ? null : String(BigInt(millis) * 1000n)
}

const SPANS: readonly (readonly [number, string])[] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
]

/** Formats a duration in microseconds by its largest unit. */
export function durationText(micros: number): string {
  const seconds = micros / 1e6
  for (const [size, unit] of SPANS) {
    if (seconds >= size) return `${rounded(seconds / size)} ${unit}`
  }
  return micros >= 1_000 ? `${rounded(micros / 1_000)} ms` : `${rounded(micros)} µs`
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

export function bytesText(bytes: number | string): string {
  let size = Number(bytes)
  let unit = 0
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024
    unit++
  }
  return size === 1 && unit === 0 ? '1 byte' : `${rounded(size)} ${UNITS[unit]}`
}

function rounded(number: number): string {
  return number >= 100 || Number.isInteger(number) ? number.toFixed(0) : number.toFixed(1)
}
