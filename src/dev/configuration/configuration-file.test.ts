import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseConfigurationFile, readConfigurationFile } from './configuration-file.ts'

const valuesOf = (text: string) => {
  const { values } = parseConfigurationFile(text)
  return Object.fromEntries([...values!].map(([name, value]) => [name, value.reveal()]))
}
const PEM = '-----BEGIN KEY-----\nMIIEvQ/x\nabc==\n-----END KEY-----'

describe('the lines of a file', () => {
  test.each([
    ['with a plain value', 'A=1', { A: '1' }],
    ['with a quoted value', `A="x # y"\nB='a b'`, { A: 'x # y', B: 'a b' }],
    ['with export', 'export A=1', { A: '1' }],
    ['with a comment', '# all\nA=1 # one', { A: '1' }],
    ['without a value', 'A=', { A: '' }],
    ['that repeats a name', 'A=1\nA=2', { A: '2' }],
    ['that ends with CR LF', 'A=1\r\nB=2\r\n', { A: '1', B: '2' }],
    ['with a dollar sign', 'A=1\nB=$A', { A: '1', B: '$A' }],
    ['that begins a quoted value of several lines', `KEY="${PEM}"\nB=2`, { KEY: PEM, B: '2' }],
  ])('a line with %s is read as in a dotenv file', (_, text, values) => {
    expect(valuesOf(text)).toEqual(values)
    expect(parseConfigurationFile(text).warnings).toEqual([])
  })

  test('a line with a name that the configuration does not allow is reported and ignored', () => {
    const text = 'A=1\nlower=2\n_U=3\nmy-key=4\n__proto__=5'
    expect(valuesOf(text)).toEqual({ A: '1' })
    const { warnings } = parseConfigurationFile(text)
    expect(warnings.map((warning) => warning.split('. ')[0])).toEqual([
      '.env.local:2 sets nothing',
      '.env.local:3 sets nothing',
      '.env.local:4 sets nothing',
      '.env.local:5 sets nothing',
    ])
    expect(warnings[0]).toContain('upper-case letters')
  })

  test('a line of a secret without quotation marks is reported without its text', () => {
    const { warnings } = parseConfigurationFile(`KEY=${PEM}`)
    expect(warnings.map((warning) => warning.slice(0, 12))).toEqual([
      '.env.local:2',
      '.env.local:3',
      '.env.local:4',
    ])
    expect(warnings.join()).not.toMatch(/MIIE|abc|END/)
  })
})

test('a printed file does not show its values', () => {
  expect(Bun.inspect(parseConfigurationFile('KEY=sesame'))).not.toContain('sesame')
})

describe('the path of a file', () => {
  let directory = ''
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'svc-configuration-'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  test('a missing file has no values and no warning', () => {
    expect(readConfigurationFile(directory)).toEqual({ values: new Map(), warnings: [] })
  })

  test.each<[string, (path: string) => void, string]>([
    ['a directory', (path) => mkdirSync(path), 'a regular file'],
    ['a FIFO', (path) => execFileSync('mkfifo', [path]), 'a regular file'],
    ['a symbolic link', (path) => symlinkSync('/etc/hostname', path), 'not a symbolic link'],
    ['a dangling link', (path) => symlinkSync('/nowhere', path), 'not a symbolic link'],
    ['a huge file', (path) => writeFileSync(path, '#'.repeat(5 << 20)), 'a smaller file'],
    ['other bytes', (path) => writeFileSync(path, Buffer.from([0x41, 0x3d, 0xff])), 'UTF-8'],
  ])('a path with %s is reported and has unknown values', (_, make, rule) => {
    make(join(directory, '.env.local'))
    const { values, warnings } = readConfigurationFile(directory)
    expect(values).toBeNull()
    expect(warnings).toEqual([expect.stringContaining(rule)])
  })
})
