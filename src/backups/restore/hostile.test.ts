import { hostileSuite } from '../../../testing/backups/hostile-suite.ts'

hostileSuite(61)
