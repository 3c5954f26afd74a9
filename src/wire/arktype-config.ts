/** Loaded before arktype itself: every object is closed. */
import { configure } from 'arktype/config'

configure({ onUndeclaredKey: 'reject' })
