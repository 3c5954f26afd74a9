/** The module with the service definitions of dist-config, which `svc-server setup` writes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const MODULE = 'src/server/setup/service-files.generated.ts'
const FILES: Readonly<Record<string, string>> = {
  LAUNCHD_PLIST: 'dist-config/svc-server.plist',
  OPENRC_SCRIPT: 'dist-config/svc-server.openrc',
  SYSTEMD_UNIT: 'dist-config/svc-server.service',
}

/** Returns the generated files by path. */
export function renderServiceFiles(root: string): Record<string, string> {
  const constants = Object.entries(FILES).map(([name, path]) => {
    const text = readFileSync(join(root, path), 'utf8')
    return `/** The text of ${path}. */\nexport const ${name} =\n  ${JSON.stringify(text)}\n`
  })
  const head = '/** Generated from dist-config by build/embed-template.ts. Do not edit. */\n'
  return { [MODULE]: [head, ...constants].join('\n') }
}
