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

  test.each(['AAAA,;', ';', 'A,', 'g', '"],"x":["'])('costs little for a bomb of %s', (unit) => {
    for (const characters of [4e6, 24e6]) {
      const mappings = unit.repeat(characters / unit.length)
      const map = `{"sources":["a"],"mappings":"${mappings}"}`
      const started = performance.now()
      mapStack('at f (release.js:1:5)', map)
      // Twenty seconds and two gigabytes, where each line and segment was a list.
      expect(performance.now() - started).toBeLessThan(5_000)
    }
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
