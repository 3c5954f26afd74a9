import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import type { Capability } from '../../../value/capabilities.ts'
import { callText, effectsOf, obstacleOf } from './run-rules.ts'

const having =
  (...capabilities: readonly Capability[]) =>
  (capability: Capability): boolean =>
    capabilities.includes(capability)

test('an internal Function is offered with functions:invoke and data:write', () => {
  const open = { visibility: 'public', auth: 'none' } as const
  const internal = { visibility: 'internal', auth: 'none' } as const
  expect(obstacleOf(open, having('functions:invoke'))).toBe(null)
  expect(obstacleOf(open, having('data:write'))).toContain('functions:invoke')
  expect(obstacleOf(internal, having('functions:invoke'))).toContain('data:write')
  expect(obstacleOf(internal, having('functions:invoke', 'data:write'))).toBe(null)
})

test('a Function that requires an identity is not offered', () => {
  const may = having('functions:invoke')
  expect(obstacleOf({ visibility: 'public', auth: 'user' }, may)).toContain('identity (user)')
  expect(obstacleOf({ visibility: 'public', auth: 'optional' }, may)).toBe(null)
})

test('the question names hosts, secrets and files that an Action uses', () => {
  const uses = { network: ['mail.example.com'], secrets: ['KEY'], storage: 'write' as const }
  const text = effectsOf({ kind: 'action', uses }, 'channel:production', 'shop').join(' ')
  for (const part of ['mail.example.com', 'KEY', 'write files', 'shop', 'channel:production']) {
    expect(text).toContain(part)
  }
})

/** The words that a shell makes of a command. */
function wordsOf(command: string): string[] {
  const script = `svc() { for word in "$@"; do printf '%s\\0' "$word"; done; }; svc ${command}`
  return spawnSync('sh', ['-c', script], { encoding: 'utf8' }).stdout.split('\0').slice(0, -1)
}

test('a shell reads the arguments of the command as they are', () => {
  const plain = { text: `it's "$HOME" \`date\` \u202e \n <img src=x onerror=1>` }
  const [command, name, json, ...rest] = wordsOf(callText('notes.add', 'channel:x', plain))
  expect([command, name, ...rest]).toEqual([
    'call',
    'notes.add',
    '--operator',
    '--target',
    'channel:x',
  ])
  expect(JSON.parse(json!)).toEqual(plain)
  expect(json).not.toContain('\u202e')
})

test('arguments that are too long for a command line come from a file', () => {
  expect(callText('a.b', 'channel:x', { text: 'x'.repeat(10_000) })).toBe(
    'call a.b --args-file FILE --operator --target channel:x',
  )
})
