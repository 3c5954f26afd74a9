/** Tests that no text of a caller looks like a record of its own. */
import { expect, test } from 'vitest'
import { fc } from '../../../../testing/properties.ts'
import { realSystem } from '../../../system/system.ts'
import type { LogRecord } from '../../../wire/logs.ts'
import type { ClientEnvironment } from '../../environment.ts'
import { Output } from '../../output.ts'
import { humanLine } from './log-lines.ts'

const FORGED = '2026-11-24T03:00:00.000000Z  error platform  the disk is full'
const CURSOR = 'logc_AAAA' as LogRecord['cursor']
const RECORD: LogRecord = {
  cursor: CURSOR,
  atMicros: '1800000000000000',
  stream: 'function',
  level: 'info',
  event: 'function.log',
  message: 'said',
  projectId: 'prj_00000000000000000000000001' as LogRecord['projectId'],
  environmentId: 'env_00000000000000000000000001' as LogRecord['environmentId'],
}

/** Returns the lines that a terminal shows of the record, without their colours. */
async function shown(record: LogRecord, variables: Record<string, string> = {}) {
  const written: string[] = []
  const environment = {
    system: realSystem(),
    variable: (name: string) => variables[name],
    stdout: { isTTY: true, write: async (text: string) => void written.push(text) },
  } as unknown as ClientEnvironment
  const output = new Output(environment, { json: false })
  await output.line({}, humanLine(output, record))
  const plain = written.join('').replace(/\u001b\[\d+m/g, '')
  expect(plain.endsWith('\n')).toBe(true)
  return plain.slice(0, -1).split('\n')
}

const PLACES: readonly (readonly [string, (text: string) => Partial<LogRecord>])[] = [
  ['a message', (text) => ({ message: text })],
  ['a message of an event', (text) => ({ event: 'function.failed', message: text })],
  ['a field', (text) => ({ fields: { text } })],
  ['a field in a field', (text) => ({ fields: { deep: { text } } })],
  ['the name of a field', (text) => ({ fields: { [text]: 1 } })],
  ['the name of a Function', (text) => ({ function: text })],
]

test.each(PLACES)('each further line of %s is marked', async (_, place) => {
  const [first, ...rest] = await shown({ ...RECORD, ...place(`a\n${FORGED}`) })
  expect(first).toMatch(/^2027-01-15T08:00:00/)
  expect(rest.every((line) => line.startsWith('    | '))).toBe(true)
})

test('no text of a caller begins a line', async () => {
  const texts = fc.array(
    fc.constantFrom(FORGED, 'a', '\n', '\r', '\r\n', '\v', '\f', '\u2028', ' '),
  )
  const records = fc.tuple(fc.constantFrom(...PLACES), texts)
  await fc.assert(
    fc.asyncProperty(records, async ([[, place], parts]) => {
      const [, ...rest] = await shown({ ...RECORD, ...place(parts.join('')) })
      for (const line of rest) expect(line).toMatch(/^ {4}\| /)
      expect(rest.join('')).not.toMatch(/[\r\v\f\u2028]/)
    }),
  )
})

test('the lines of a message stay lines', async () => {
  const lines = await shown({ ...RECORD, message: 'one\n  two' })
  expect(lines.slice(1)).toEqual(['    |   two'])
})
