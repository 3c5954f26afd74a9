/**
 * Compresses the documents and the parts of the site in the bundle: an executable holds each text
 * twice, as source and as bytecode. They are decompressed when a command asks for them.
 */
import { brotliCompressSync } from 'node:zlib'
import type { Plugin } from 'esbuild'

const TEXTS = /\/src\/(?:docs\/embedded|site\/assets)\.generated\.ts$/

export const compressedTexts: Plugin = {
  name: 'compressed-texts',
  setup({ onLoad }) {
    onLoad({ filter: TEXTS }, async ({ path }) => {
      const values: Readonly<Record<string, unknown>> = await import(path)
      const packed = brotliCompressSync(JSON.stringify(values)).toString('base64')
      const names = Object.keys(values)
      const contents = [
        "import { brotliDecompressSync } from 'node:zlib'",
        `const packed = Buffer.from('${packed}', 'base64')`,
        "const values = JSON.parse(brotliDecompressSync(packed).toString('utf8'))",
        ...names.map((name) => `export const ${name} = values.${name}`),
      ].join('\n')
      return { contents, loader: 'js' }
    })
  },
}
