/** The page of the chat Workspace, bundled in memory with the settings of this service. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { build } from 'esbuild'

const PACKAGES = join(import.meta.dirname, '../../node_modules')
const SETTINGS_FILE = /[/\\]web[/\\]src[/\\]settings\.ts$/

/**
 * Returns the files of the page by their paths; `settings` takes the place of its
 * `src/settings.ts`. Its packages are those of this checkout, so that nothing is installed.
 */
export async function bundlePage(
  workspace: string,
  settings: string,
): Promise<ReadonlyMap<string, string>> {
  const web = join(workspace, 'web')
  const { outputFiles } = await build({
    entryPoints: { main: join(web, 'src/main.tsx') },
    outdir: '/',
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    logLevel: 'silent',
    alias: { svc: join(web, '_generated/svc') },
    nodePaths: [PACKAGES],
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [
      {
        name: 'settings',
        setup: ({ onLoad }) =>
          onLoad({ filter: SETTINGS_FILE }, () => ({ contents: settings, loader: 'ts' })),
      },
    ],
  })
  const html = readFileSync(join(web, 'index.html'), 'utf8')
  const style = '<link rel="stylesheet" href="/main.css" /></head>'
  const page = html.replace('/src/main.tsx', '/main.js').replace('</head>', style)
  return new Map([['/', page], ...outputFiles.map(({ path, text }) => [path, text] as const)])
}

const TYPES: Readonly<Record<string, string>> = { js: 'text/javascript', css: 'text/css' }

export interface ServedPage {
  /** Address for a browser. */
  readonly url: string
  close(): void
}

/** Serves the files at a port of 127.0.0.1. */
export async function servePage(
  files: ReadonlyMap<string, string>,
  port: number,
): Promise<ServedPage> {
  const server = createServer(({ url = '/' }, response) => {
    const { pathname } = new URL(url, 'http://page')
    const text = files.get(pathname)
    const type = TYPES[pathname.split('.').at(-1)!] ?? 'text/html'
    response.writeHead(text === undefined ? 404 : 200, {
      'content-type': `${type}; charset=utf-8`,
      'cache-control': 'no-store',
    })
    response.end(text)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
