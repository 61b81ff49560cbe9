; Rally: a ball between two bats, first to 21.
;
; The right bat is the player's (joystick up and down, or right and left), the left one
; the program's: it follows the ball a pixel a frame, so a ball that was hit with the edge
; of a bat, and goes three pixels a frame, gets by it. RESET begins a game.
;
;   80  points of the program      reward = ram:0x81-ram:0x80
;   81  points of the player       done   = ram:0x80==21|ram:0x81==21
;
; dasm rally.asm -f3 -orally.bin
;
; With -DPONG=1 the points lie where the rules of that title look for them, so that they
; can be compared with a program that knows titles only.
        processor 6502
        include "tia.inc"
        include "game.inc"

        IFCONST PONG
LEFTPTS = $8D
RIGHTPTS = $8E
TENS    = $A0           ; offsets of digits: left, right
        ELSE
LEFTPTS = $80
RIGHTPTS = $81
TENS    = $8D
        ENDIF
BALLX   = $82           ; 0..159
BALLY   = $83           ; 0..87, in pairs of lines
SPEEDX  = $84           ; signed
SPEEDY  = $85
LEFTY   = $86           ; top of a bat, 0..76
RIGHTY  = $87
CHANCE  = $88
WAIT    = $89           ; frames till the ball is served
LEFTRUN = $8A           ; lines of the bats and the ball still to draw
RIGHTRUN = $8B
BALLRUN = $8C
ONES    = $8F
LEFTBITS = $91
RIGHTBITS = $92
LINE    = $93
FRAME   = $94

BATS    = 12            ; pairs of lines
FIELD   = 88
SERVE   = 40

        org $F000
Start   sei
        cld
        ldx #$FF
        txs
        lda #0
        tax
Clear   sta $00,x
        inx
        bne Clear
        lda #57
        sta CHANCE
        jsr NewGame

Frame   lda #2
        sta VSYNC
        sta WSYNC
        sta WSYNC
        sta WSYNC
        lda #0
        sta VSYNC
        lda #43         ; 37 lines of blank
        sta TIM64T
        inc FRAME
        lda SWCHB
        lsr
        bcs Played
        jsr NewGame
Played  jsr MoveBats
        jsr MoveBall
        jsr Digits
        jsr Place
BlankWait lda INTIM
        bne BlankWait
        sta WSYNC
        sta VBLANK      ; 0: the picture begins

        jsr DrawScore
        jsr DrawField

        lda #2
        sta WSYNC
        sta VBLANK
        lda #35         ; 30 lines of blank
        sta TIM64T
OverWait lda INTIM
        bne OverWait
        jmp Frame

; ---- the game ----

NewGame lda #0
        sta LEFTPTS
        sta RIGHTPTS
        lda #40
        sta LEFTY
        sta RIGHTY
        ; falls through

Serve   lda #SERVE
        sta WAIT
        lda #78
        sta BALLX
        jsr Random
        and #31
        clc
        adc #30
        sta BALLY
        jsr Random
        and #1
        beq Down
        lda #$FE        ; -2
Down    clc
        adc #1
        sta SPEEDY      ; 1 or -1
        lda LEFTPTS     ; to the side that serves turn by turn
        clc
        adc RIGHTPTS
        and #1
        beq ToRight
        lda #$FE        ; -2
        sta SPEEDX
        rts
ToRight lda #2
        sta SPEEDX
        rts

; A shift register, stirred by what the player does.
Random  lda CHANCE
        asl
        bcc NoTap
        eor #$1D
NoTap   eor FRAME
        bne NotNull
        lda #$A5
NotNull sta CHANCE
        rts

MoveBats lda SWCHA
        and #%10010000  ; right, up
        cmp #%10010000
        beq NotUp
        lda RIGHTY
        cmp #2
        bcc NotUp
        sbc #2
        sta RIGHTY
NotUp   lda SWCHA
        and #%01100000  ; left, down
        cmp #%01100000
        beq NotDown
        lda RIGHTY
        cmp #FIELD-BATS-1
        bcs NotDown
        adc #2
        sta RIGHTY
NotDown lda SPEEDX      ; the program looks at what comes
        bpl LeftDone
        lda LEFTY
        clc
        adc #BATS/2-1
        cmp BALLY
        beq LeftDone
        bcs LeftUp
        lda LEFTY
        cmp #FIELD-BATS
        bcs LeftDone
        inc LEFTY
        rts
LeftUp  lda LEFTY
        beq LeftDone
        dec LEFTY
LeftDone rts

MoveBall lda LEFTPTS
        cmp #21
        bcs Rest
        lda RIGHTPTS
        cmp #21
        bcs Rest
        lda WAIT
        beq Flying
        dec WAIT
Rest    rts
Flying  lda BALLY       ; up and down, back from the edges
        clc
        adc SPEEDY
        cmp #FIELD-1
        bcc KeepY
        lda SPEEDY
        eor #$FF
        clc
        adc #1
        sta SPEEDY
        lda BALLY
        clc
        adc SPEEDY
KeepY   sta BALLY
        lda BALLX
        clc
        adc SPEEDX
        sta BALLX
        lda SPEEDX
        bmi ToLeft

        lda BALLX       ; to the right: bat at 148
        cmp #146
        bcc Rest
        cmp #152
        bcs RightOut
        lda RIGHTY
        jsr Struck
        bcc Rest
        lda #$FE        ; back, as fast as the bat's edge makes it
        jmp Return
RightOut cmp #156
        bcc Rest
        inc LEFTPTS
        jmp Serve

ToLeft  lda BALLX       ; bat at 8
        cmp #12
        bcs Rest
        cmp #6
        bcc LeftOut
        lda LEFTY
        jsr Struck
        bcc Rest
        jsr Random      ; where the program meets it is a matter of chance
        and #7
        tay
        iny
        iny
        lda #2
Return  sta SPEEDX
        lda Angles,y
        sta SPEEDY
        rts
LeftOut cmp #4
        bcs Rest
        inc RIGHTPTS
        jmp Serve

; Carry: the ball meets the bat whose top is in A; Y: where, in pairs of lines.
Struck  sta LINE
        lda BALLY
        clc
        adc #1
        sec
        sbc LINE
        bcc Missed
        cmp #BATS+1
        bcs Missed
        tay
        sec
        rts
Missed  clc
        rts

Angles  .byte $FD,$FD,$FE,$FE,$FF,$FF,$01,$01,$01,$02,$02,$03,$03

; ---- the picture ----

; Points as digits of the playfield: four bits for tens, four for ones.
Digits  ldx #1
DigitLoop lda LEFTPTS,x
        ldy #0
TenLoop cmp #10
        bcc TenDone
        sbc #10
        iny
        bne TenLoop
TenDone sta LINE
        asl
        asl
        clc
        adc LINE
        sta ONES,x
        sty LINE
        tya
        asl
        asl
        adc LINE
        sta TENS,x
        dex
        bpl DigitLoop
        rts

; Bats at 8 and 148, the ball at BALLX.
Place   lda #8
        ldx #0
        jsr PlaceX
        lda #148
        ldx #1
        jsr PlaceX
        lda BALLX
        ldx #4
        jsr PlaceX
        sta WSYNC
        sta HMOVE
        rts

; Thing X (0, 1: players; 4: ball) to pixel A.
        PLACE_X

; Ten lines of points, each row of a digit twice.
DrawScore lda #%00000010
        sta CTRLPF      ; halves in the colours of the bats
        lda #$36
        sta COLUP0
        lda #$C8
        sta COLUP1
        SCORE_ROWS

; The field: edges of two lines, then pairs of lines.
DrawField lda #%00010001
        sta CTRLPF      ; mirrored, a ball two pixels wide
        lda #$0E
        sta COLUPF
        lda #$FF
        sta WSYNC
        sta PF0
        sta PF1
        sta PF2
        sta WSYNC
        sta WSYNC
        lda #0
        sta PF0
        sta PF1
        sta PF2
        ldy #0          ; pair of lines
FieldLine sta WSYNC
        tya             ; the left bat
        sec
        sbc LEFTY
        cmp #BATS
        lda #0
        bcs NoLeft
        lda #%00111100
NoLeft  sta GRP0
        tya
        sec
        sbc RIGHTY
        cmp #BATS
        lda #0
        bcs NoRight
        lda #%00111100
NoRight sta GRP1
        sta WSYNC
        tya
        sec
        sbc BALLY
        cmp #2
        lda #0
        bcs NoBall
        lda #2
NoBall  sta ENABL
        iny
        cpy #FIELD
        bne FieldLine
        sta WSYNC
        lda #0
        sta GRP0
        sta GRP1
        sta ENABL
        lda #$FF
        sta PF0
        sta PF1
        sta PF2
        sta WSYNC
        sta WSYNC
        lda #0
        sta PF0
        sta PF1
        sta PF2
        rts

        DIGIT_ROWS

        org $FFFC
        .word Start
        .word Start
