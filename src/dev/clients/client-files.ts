/** The files that an application imports: its references, `svc/client` and `svc/react`. */
import { join } from 'node:path'
import { APP_CLIENT_FILES } from '../../app-client/embedded.generated.ts'
import type { GeneratedFile } from '../codegen/codegen.ts'
import { LOCAL_SETTINGS_FILE } from './local-settings.ts'

/** Returns the files for a directory of an application. Their paths begin with the directory. */
export function clientFiles(directory: string, references: string): readonly GeneratedFile[] {
  const files = {
    '.gitignore': `${LOCAL_SETTINGS_FILE}\n`,
    'api.ts': references,
    ...APP_CLIENT_FILES,
  }
  return Object.entries(files).map(([name, text]) => ({ path: join(directory, name), text }))
}
