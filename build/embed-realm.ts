/** Embeds the code that runs in the realm of a Workspace. */
import { updateModule } from './bundled-text.ts'

await updateModule({
  generator: 'build/embed-realm.ts',
  entry: 'src/runner/realm/entry.ts',
  module: 'src/runner/realm/realm.generated.ts',
  constant: 'REALM_BUNDLE',
  options: { format: 'iife', globalName: 'realm' },
})
