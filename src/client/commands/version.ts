/** `svc version`: prints the version of the client. */
import { BUILD_VERSION } from '../../value/version.ts'
import { command } from '../contexts.ts'

export const versionCommand = command({
  name: 'version',
  summary: 'Print the version of this client',
  options: {},
  async run({ output }) {
    await output.result({ version: 1, name: 'svc', productVersion: BUILD_VERSION }, [
      `svc ${BUILD_VERSION}`,
    ])
  },
})
