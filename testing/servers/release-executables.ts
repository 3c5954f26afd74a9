/** Executables as a release has them: compiled, with a version and a key of their own. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { bundle, ROOT } from '../../build/bundle.ts'
import { compile } from '../../build/compile.ts'

const VERSION_FILE = /src[/\\]value[/\\]version\.ts$/

/** Compiles `svc-server` into a folder below `dist`, which `dispose` removes. */
export async function compileRelease(
  version: string,
  publicKey: string,
): Promise<{ readonly server: string; dispose(): void }> {
  mkdirSync(join(ROOT, 'dist'), { recursive: true })
  const folder = mkdtempSync(join(ROOT, 'dist/release-'))
  const outfile = join(folder, 'main.js')
  const withVersion = (path: string) =>
    readFileSync(path, 'utf8').replace(/VERSION = '.+'/, `VERSION = '${version}'`)
  await bundle({
    outfile,
    release: { publicKey, upgradeUrl: '' },
    plugins: [
      {
        name: 'version',
        setup({ onLoad }) {
          onLoad({ filter: VERSION_FILE }, ({ path }) => ({
            contents: withVersion(path),
            loader: 'ts',
          }))
        },
      },
    ],
  })
  const suffix = `.${basename(folder)}`
  const server = compile(process.execPath, folder, { module: outfile, suffix })
  return { server, dispose: () => rmSync(folder, { recursive: true, force: true }) }
}
