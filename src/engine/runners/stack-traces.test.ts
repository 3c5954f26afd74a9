import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { mapStack } from './stack-traces.ts'

const SOURCE = `export function outer(value: { readonly deep: { readonly x: number } }) {
  const inner = (it: typeof value) =>
    it.deep.x
  return inner(value)
}
`

async function bundled(minify: boolean) {
  const { outputFiles } = await build({
    stdin: { contents: SOURCE, sourcefile: 'functions/notes.ts', loader: 'ts' },
    bundle: true,
    format: 'esm',
    minify,
    sourcemap: 'external',
    outdir: 'out',
    write: false,
  })
  const [map, code] = [/\.map$/, /\.js$/].map((form) =>
    outputFiles.find((it) => form.test(it.path)),
  )
  return { map: map!.text, lines: code!.text.split('\n') }
}

describe('a stack trace', () => {
  test.each([false, true])('names the author’s line (minified: %s)', async (minify) => {
    const { map, lines } = await bundled(minify)
    const row = lines.findIndex((line) => line.includes('.deep.x'))
    const column = lines[row]!.indexOf('deep') + 1
    const frame = `at inner (release.js:${row + 1}:${column})`
    expect(mapStack(frame, map)).toMatch(/^at inner \(.*functions\/notes\.ts:3:\d+\)$/)
  })

  test('keeps frames that the map does not know, and their order', async () => {
    const { map } = await bundled(false)
    const stack = 'at a (release.js:9999:1)\nat b (elsewhere.js:1:1)\nat release.js:1:1'
    expect(mapStack(stack, map).split('\n').slice(0, 2)).toEqual(stack.split('\n').slice(0, 2))
  })

  test('shows equal frames in a row as one line with their count', () => {
    const frames = (count: number) => Array<string>(count).fill(FRAME)
    const end = 'at g (release.js:9:1)'
    const stack = [...frames(2), end, ...frames(200)].join('\n')
    const lines = (at: string) => [`at f (${at}) (2 times)`, end, `at f (${at}) (61 times)`]
    expect(mapStack(stack, mapOf('AAAA')).split('\n')).toEqual(lines('a:1:1'))
    expect(mapStack(stack, null).split('\n')).toEqual(lines('release.js:1:5'))
    expect(mapStack(FRAME, null)).toBe(FRAME)
  })

  const FRAME = 'at f (release.js:1:5)'
  const mapOf = (mappings: string) => JSON.stringify({ sources: ['a'], mappings })

  test.each([';', ',K'])(
    'a stack trace is mapped with a million lines or segments, and not beyond: %s',
    { tags: ['slow'] },
    (unit) => {
      expect(mapStack(FRAME, mapOf(`AAAA${unit.repeat(999_999)}`))).toBe('at f (a:1:1)')
      expect(mapStack(FRAME, mapOf(`AAAA${unit.repeat(1_000_000)}`))).toBe(FRAME)
    },
  )

  test.each(['AAAA,;', ';', 'A,', 'g', '"],"x":["'])('survives a bomb of %s', (unit) => {
    for (const characters of [4e6, 24e6]) {
      const mappings = unit.repeat(characters / unit.length)
      expect(mapStack(FRAME, `{"sources":["a"],"mappings":"${mappings}"}`)).toBe(FRAME)
    }
  })

  test('keeps the location of code that the map says has no source', () => {
    expect(mapStack(FRAME, mapOf('AAAA,K'))).toBe('at f (a:1:1)')
    expect(mapStack(FRAME, mapOf('AAAA,C'))).toBe(FRAME)
  })

  test('a stack trace is mapped by the segments of its line in any order', () => {
    const stack = [1, 3, 5, 9].map((column) => `at f (release.js:1:${column})`).join('\n')
    const mapped = ['at f (a:4:1)', 'at f (a:3:1)', 'at f (a:2:1) (2 times)']
    expect(mapStack(stack, mapOf('IACA,FACA,FACA')).split('\n')).toEqual(mapped)
  })

  test('names no source by pages', () => {
    const map = JSON.stringify({ sources: ['x'.repeat(1e6)], mappings: 'AAAA' })
    expect(mapStack('at f (release.js:1:5)', map).length).toBeLessThan(300)
  })

  test.each([
    null,
    '',
    'no JSON',
    '[]',
    '{"sources":[1],"mappings":"AAAA"}',
    '{"sources":["a"],"mappings":5}',
    '{"sources":["a"],"mappings":"%%%%;;;\\u0000,,"}',
    `{"sources":["a"],"mappings":"${'g'.repeat(1_000)}"}`,
  ])('survives a map that is absent or damaged: %s', (map) => {
    expect(mapStack('at f (release.js:1:5)', map)).toMatch(/^at f \((release\.js:1:5|a:.*)\)$/)
  })
})
