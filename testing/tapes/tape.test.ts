import { expect, test } from 'vitest'
import { commandsOf, MARK, markedScript, normalised, shownText, tapeOf } from './tape.ts'

const SCRIPT = `# One.
a=1
b=$(echo \\
  x |
  cat)

until true; do
  sleep 1
done
`

test('a script is split into whole commands', () => {
  expect(commandsOf(SCRIPT)).toEqual([
    '# One.',
    'a=1',
    'b=$(echo \\\n  x |\n  cat)',
    'until true; do\n  sleep 1\ndone',
  ])
  expect(() => commandsOf('if true; then')).toThrow('inside a command')
})

test('a marked script tells the output of each command', () => {
  expect(markedScript(['a', 'b'])).toBe("exec 2>&1\nprintf '\\036'\na\nprintf '\\036'\nb")
  const tape = tapeOf(['echo a b', 'true'], `${MARK}a b\n${MARK}`)
  const [head, ...events] = tape
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(head).toEqual({ version: 2, width: 100, height: 24 })
  expect(events.map(([, , text]) => text).join('')).toBe('$ echo a b\r\na b\r\n$ true\r\n')
  const times = events.map(([seconds]) => seconds)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(shownText(tapeOf(['a'], `${MARK}12 files`))).toBe('$ a\n0 files\n')
  expect(() => tapeOf(['a', 'b'], `${MARK}a`)).toThrow('no mark')
})

test('two runs that differ in identifiers, digests and times have one recording', () => {
  const output = (id: string, seconds: number): string =>
    `rel_${id} at 2026-01-0${seconds}T10:00:0${seconds}.5Z in ${seconds}.1 s, again rel_${id}`
  const one = normalised(output('01M84217E8DMK01HV0P3A4NVEC', 1))
  expect(one).toBe(normalised(output('01KDVDNA00041061050R3GG28A', 2)))
  expect(one).toContain('rel_01M84217E8DMK01HV0P3A4N000 at 2026-11-27T09:00:00Z in 0.2 s')
})
