/** Checks the list of variables against the runtime of these tests, and against changed ones. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { neutralise, renamePrefix } from './neutralise.ts'
import { positions, requireKnownVariables } from './scan.ts'
import {
  DOCUMENTED,
  HARMLESS,
  NEUTRALISED,
  NEUTRALISED_SOMEWHERE,
  NO_VARIABLES,
  REMOVED,
} from './variables.ts'

const RUNTIME = readFileSync(process.execPath)
const readsGetenv = process.platform === 'linux' && process.arch === 'x64'

/** The runtime as if a new version read another variable instead of a known one. */
function changed(from: string, to: string): Buffer {
  const bytes = Buffer.from(RUNTIME)
  const found = [...positions(bytes, from)]
  expect(found).not.toEqual([])
  for (const at of found) bytes.write(to.padEnd(from.length, '\0'), at, 'latin1')
  return bytes
}

test('every name is classified once', () => {
  const names = [
    ...[NEUTRALISED, NEUTRALISED_SOMEWHERE, REMOVED, DOCUMENTED, NO_VARIABLES].flat(),
    ...HARMLESS.flatMap((row) => row.names),
  ]
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
})

describe('variables that the runtime reads', () => {
  test('a runtime that reads only classified variables can be shipped', () => {
    expect(() => requireKnownVariables(RUNTIME)).not.toThrow()
  })

  test.each([
    ['another constant of its own', '\0BUN_BE_BUN\0', '\0BUN_BE_FUN\0', 'BUN_BE_FUN'],
    ['a longer name', '\0BUN_OPTIONS\0BUN_TCC', '\0BUN_OPTIONS_TWO\0CC', 'BUN_OPTIONS_TWO'],
    [
      'a constant between others',
      'dBUN_CONFIG_VERBOSE_',
      'dBUN_CONFIG_SHOWING_',
      'BUN_CONFIG_SHOWING',
    ],
    ['another variable in a script', 'env.NODE_TEST_CONTEXT', 'env.NODE_TEST_SECRETS', 'SECRETS'],
  ])('%s stops the build', { tags: ['slow'] }, (_, from, to, name) => {
    expect(() => requireKnownVariables(changed(from, to))).toThrow(name)
  })

  test.runIf(readsGetenv)(
    'another name through getenv stops the build (on Linux, x64)',
    { tags: ['slow'] },
    () => {
      expect(() => requireKnownVariables(changed('\0JPEGMEM\0', '\0OWN_LOG\0'))).toThrow('OWN_LOG')
    },
  )
})

describe('neutralise', () => {
  test('neutralise leaves no constant and no read of any name', { tags: ['slow'] }, () => {
    const bytes = Buffer.from(RUNTIME)
    neutralise(bytes)
    for (const name of [...NEUTRALISED, ...NEUTRALISED_SOMEWHERE]) {
      expect([name, ...positions(bytes, `\0${name}\0`)]).toEqual([name])
      const reads = [...positions(bytes, `process.env.${name}`)].filter((at) => {
        const end = at + 'process.env.'.length + name.length
        return !/^\w|^ = /.test(bytes.toString('latin1', end, end + 3))
      })
      expect([name, ...reads]).toEqual([name])
    }
    expect([...positions(bytes, '\0JSC_')]).toEqual([])
    expect(bytes.length).toBe(RUNTIME.length)
  })

  test.each(['BUN_OPTIONS', 'BUN_BE_BUN', 'NODE_USE_ENV_PROXY'])(
    'the build stops if the runtime has no %s',
    { tags: ['slow'] },
    (name) => {
      const other = `${name.slice(0, -1)}_`
      expect(() => neutralise(changed(name, other))).toThrow(`the runtime has no ${name}`)
    },
  )

  test('the build stops if the options of JavaScriptCore are read in another way', {
    tags: ['slow'],
  }, () => {
    const bytes = Buffer.from(RUNTIME)
    renamePrefix(bytes)
    expect(() => renamePrefix(bytes)).toThrow('compares names with BUN_JSC_ in 0 places')
  })
})
