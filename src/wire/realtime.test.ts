/** The guide for authors of clients: its example is a session that the declared messages allow. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openMessageCheck } from '../../testing/realtime/declared-messages.ts'
import { parseStrictJson } from '../value/strict-json.ts'
import { read } from './reading/read.ts'
import { RealtimeRequest, RealtimeRequestV2, type RealtimeVersion } from './realtime.ts'

const GUIDE = readFileSync(new URL('../docs/realtime.md', import.meta.url), 'utf8')
const LINES = GUIDE.split('\n').filter((line) => /^[<>] /.test(line))

test('every message of the example of the guide is one of the protocol', async () => {
  const isDeclared = await openMessageCheck()
  const typesOf = (sign: string) =>
    LINES.filter((line) => line.startsWith(sign)).map((line) => JSON.parse(line.slice(2)).type)
  expect(new Set(typesOf('>')).size).toBe(4)
  expect(new Set(typesOf('<')).size).toBe(10)
  for (const line of LINES) {
    const message = parseStrictJson(line.slice(2))
    const { version } = message as { readonly version: RealtimeVersion }
    if (line.startsWith('<')) expect([line, isDeclared(message, version)]).toEqual([line, true])
    else if (version === 1) read(RealtimeRequest, message, 'REQUEST_INVALID')
    else read(RealtimeRequestV2, message, 'REQUEST_INVALID')
  }
})
