/**
 * @module-tag slow
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { expect, onTestFinished, test } from 'vitest'
import { DOCUMENTS } from '../../src/docs/embedded.generated.ts'
import { SITE_ASSETS } from '../../src/site/assets.generated.ts'
import { ROOT } from '../bundle.ts'
import { compressedTexts } from './compressed-texts.ts'

test('compressed texts are those of their modules, in less than half of their size', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-texts-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const entry = join(folder, 'entry.ts')
  const modules = ['src/docs/embedded.generated.ts', 'src/site/assets.generated.ts']
  const lines = modules.map((path) => `export * from ${JSON.stringify(join(ROOT, path))}\n`)
  writeFileSync(entry, lines.join(''))
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    plugins: [compressedTexts],
  })
  const { text } = result.outputFiles[0]!
  const file = join(folder, 'bundle.mjs')
  writeFileSync(file, text)
  const bundled = await import(file)
  expect(bundled.DOCUMENTS).toEqual(DOCUMENTS)
  expect(bundled.SITE_ASSETS).toEqual(SITE_ASSETS)
  const { length } = JSON.stringify([DOCUMENTS, SITE_ASSETS])
  expect(text.length).toBeLessThan(length / 2)
})
